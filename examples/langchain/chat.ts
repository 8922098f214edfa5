// Streams an answer and binds a tool with LangChain in TypeScript.
// Run it with: npm install --no-save @langchain/core @langchain/openai
//              MILLRACE_API_KEY=secret_... tools/node examples/langchain/chat.ts
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY } = process.env;
const { MILLRACE_MODEL = 'llama3.1-8b-instruct' } = process.env;

const model = new ChatOpenAI({
  configuration: { baseURL: `${MILLRACE_URL}/v1` },
  apiKey: MILLRACE_API_KEY,
  model: MILLRACE_MODEL,
  temperature: 0,
  maxTokens: 100,
});

for await (const chunk of await model.stream('Who are you?')) process.stdout.write(chunk.text);
console.log();

const getWeather = tool(({ city }) => `It is sunny in ${city}.`, {
  name: 'get_weather',
  description: 'Get the weather in a city',
  schema: z.object({ city: z.string() }),
});
const answer = await model.bindTools([getWeather]).invoke('What is the weather in Paris?');
for (const { name, args } of answer.tool_calls ?? []) {
  const result = await getWeather.invoke(args as { city: string });
  console.log(`The model calls ${name}(${JSON.stringify(args)}): ${result}`);
}
