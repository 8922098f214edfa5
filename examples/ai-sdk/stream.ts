// Streams an answer and asks for a typed object with the AI SDK.
// Run it with: MILLRACE_API_KEY=secret_... tools/node examples/ai-sdk/stream.ts
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, streamText } from 'ai';
import { z } from 'zod';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY } = process.env;
const { MILLRACE_MODEL = 'llama3.1-8b-instruct' } = process.env;

const millrace = createOpenAICompatible({
  name: 'millrace',
  baseURL: `${MILLRACE_URL}/v1`,
  apiKey: MILLRACE_API_KEY,
  supportsStructuredOutputs: true,
});
const model = millrace(MILLRACE_MODEL);

const { textStream } = streamText({ model, prompt: 'Who are you?', maxOutputTokens: 100 });
for await (const text of textStream) process.stdout.write(text);
console.log();

const { output } = await generateText({
  model,
  prompt: 'Anna is 30 years old and lives in Rome. Who is she?',
  temperature: 0,
  output: Output.object({
    schema: z.object({ name: z.string().max(40), age: z.int() }),
  }),
});
console.log(`${output.name} is ${output.age} years old`);
