// Prints an answer as it is generated, then what it used.
// Run it with: MILLRACE_API_KEY=secret_... tools/node examples/typescript/stream.ts
import OpenAI from 'openai';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY } = process.env;
const { MILLRACE_MODEL = 'llama3.1-8b-instruct' } = process.env;

const client = new OpenAI({ baseURL: `${MILLRACE_URL}/v1`, apiKey: MILLRACE_API_KEY });
const stream = await client.chat.completions.create({
  model: MILLRACE_MODEL,
  messages: [{ role: 'user', content: 'Tell me a short story.' }],
  max_tokens: 100,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
  if (chunk.usage) console.log(`\n${chunk.usage.total_tokens} tokens`);
}
