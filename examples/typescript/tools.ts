// Lets a model call a function, and tells it the result.
// Run it with: MILLRACE_API_KEY=secret_... tools/node examples/typescript/tools.ts
import OpenAI from 'openai';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY } = process.env;
const { MILLRACE_MODEL = 'llama3.1-8b-instruct' } = process.env;

const client = new OpenAI({ baseURL: `${MILLRACE_URL}/v1`, apiKey: MILLRACE_API_KEY });

const getWeather = ({ city }: { city: string }) => `It is sunny in ${city}, 21 degrees.`;

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Get the weather in a city',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
      },
    },
  },
];
const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'user', content: 'What is the weather in Paris?' },
];
const options = { model: MILLRACE_MODEL, tools, temperature: 0 };

const first = await client.chat.completions.create({ ...options, messages });
const answer = first.choices[0]?.message;
if (answer === undefined) throw new Error('The answer has no choices.');
messages.push(answer);

for (const call of answer.tool_calls ?? []) {
  if (call.type !== 'function') continue;
  console.log(`The model calls ${call.function.name}(${call.function.arguments})`);
  const content = getWeather(JSON.parse(call.function.arguments));
  messages.push({ role: 'tool', tool_call_id: call.id, content });
}

const final = await client.chat.completions.create({ ...options, messages });
console.log(final.choices[0]?.message.content);
