// Asks a model one question with OpenAI's TypeScript library.
// Run it with: MILLRACE_API_KEY=secret_... tools/node examples/typescript/chat.ts
import OpenAI from 'openai';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY } = process.env;
const { MILLRACE_MODEL = 'llama3.1-8b-instruct' } = process.env;

const client = new OpenAI({ baseURL: `${MILLRACE_URL}/v1`, apiKey: MILLRACE_API_KEY });
const answer = await client.chat.completions.create({
  model: MILLRACE_MODEL,
  messages: [{ role: 'user', content: 'Who are you?' }],
});
console.log(answer.choices[0]?.message.content);
