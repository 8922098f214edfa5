// Requests to models that embed texts or rank documents, as code to paste and run.

import type { Language } from './chat.ts';
import { toPostCode } from './post.ts';

const texts = ['A mill wheel', 'A water channel'];

export function toEmbeddingCode(address: string, model: string): Record<Language, string> {
  const list = texts.map((text) => JSON.stringify(text)).join(', ');
  return {
    curl: toPostCode(`${address}/v1/embeddings`, { model, input: texts }).curl,
    Python: [
      'import os',
      '',
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url="${address}/v1", api_key=os.environ["MILLRACE_API_KEY"])`,
      '',
      `response = client.embeddings.create(model="${model}", input=[${list}])`,
      'print([item.embedding[:3] for item in response.data])',
    ].join('\n'),
    TypeScript: [
      "import OpenAI from 'openai';",
      '',
      'const client = new OpenAI({',
      `  baseURL: '${address}/v1',`,
      '  apiKey: process.env.MILLRACE_API_KEY,',
      '});',
      '',
      `const response = await client.embeddings.create({ model: '${model}', input: [${list}] });`,
      'console.log(response.data.map(({ embedding }) => embedding.slice(0, 3)));',
    ].join('\n'),
  };
}

export const toRerankCode = (address: string, model: string): Record<Language, string> =>
  toPostCode(`${address}/v1/rerank`, { model, query: 'What drives a mill?', documents: texts });
