// What LangChain does against the real model, as lines of JSON: langchain.test.ts runs it where LangChain is installed.

import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const model = new ChatOpenAI({
  model: 'hermes3-8b',
  temperature: 0,
  maxRetries: 0,
  apiKey: process.env.MILLRACE_API_KEY,
  configuration: { baseURL: `${process.env.MILLRACE_URL}/v1` },
});
const print = (name: string, value: unknown) => console.log(JSON.stringify([name, value]));

const plain = await model.invoke([new HumanMessage('What is the capital of France?')]);
print('invoke', plain.text);
let streamed = '';
for await (const chunk of await model.stream('What is the capital of France?')) {
  streamed += chunk.text;
}
print('stream', streamed);

const City = z.object({
  name: z.string().max(20),
  population: z.number().int().min(0).max(9_999_999),
});
for (const method of ['jsonSchema', 'functionCalling'] as const) {
  const structured = model.withStructuredOutput(City, { method, name: 'city' });
  print(method, City.safeParse(await structured.invoke('Paris as JSON')).success);
}

const weather = tool(async () => 'sunny', {
  name: 'get_weather',
  description: 'Get the weather of a city.',
  schema: z.object({ city: z.string().max(20) }),
});
const question = new HumanMessage('What is the weather in Paris?');
const calling = await model.bindTools([weather], { tool_choice: 'required' }).invoke([question]);
const call = calling.tool_calls?.[0];
print('call', call?.name);
const result = new ToolMessage({ content: 'sunny', tool_call_id: call?.id ?? '' });
const after = await model.invoke([question, calling, result]);
print('answer', after.text);
