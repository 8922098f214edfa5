// Asks for an answer that validates against a JSON schema.
// Run it with: MILLRACE_API_KEY=secret_... tools/node examples/typescript/json-schema.ts
import OpenAI from 'openai';

const { MILLRACE_URL = 'http://127.0.0.1:8080', MILLRACE_API_KEY } = process.env;
const { MILLRACE_MODEL = 'llama3.1-8b-instruct' } = process.env;

const client = new OpenAI({ baseURL: `${MILLRACE_URL}/v1`, apiKey: MILLRACE_API_KEY });
const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 40 },
    age: { type: 'integer' },
  },
  required: ['name', 'age'],
  additionalProperties: false,
};
const answer = await client.chat.completions.create({
  model: MILLRACE_MODEL,
  messages: [{ role: 'user', content: 'Anna is 30 years old and lives in Rome. Who is she?' }],
  response_format: { type: 'json_schema', json_schema: { name: 'person', schema } },
  temperature: 0,
});
const person: { name: string; age: number } = JSON.parse(
  answer.choices[0]?.message.content ?? 'null',
);
console.log(`${person.name} is ${person.age} years old`);
