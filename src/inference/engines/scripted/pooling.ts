// The scripted upstream's embeddings and rankings: equal texts have equal vectors, and a document is the more relevant
// the more words it shares with the query.

import { countWords } from './script.ts';

export interface PooledBody {
  readonly input?: string | readonly (string | number | readonly number[])[];
  readonly encoding_format?: string;
  readonly query?: string;
  readonly documents?: readonly string[];
}

const scriptedDimensions = 8;

/** True for the paths of embeddings and reranking. */
export const isPooled = (path: string): boolean => /\/(embeddings|rerank)$/.test(path);

/** The body of the response. */
export function writePooled(path: string, body: PooledBody, model: string): string {
  const result = path.endsWith('/rerank') ? rank(body) : embed(body);
  return JSON.stringify({ model, ...result });
}

function embed({ input = '', encoding_format }: PooledBody) {
  const isOne = typeof input === 'string' || typeof input[0] === 'number';
  const inputs = isOne ? [input] : input;
  const vectors = inputs.map((text) => toVector(JSON.stringify(text)));
  const prompt_tokens = countWords(input);
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: encoding_format === 'base64' ? toBase64(vector) : [...vector],
    })),
    usage: { prompt_tokens, total_tokens: prompt_tokens },
  };
}

function rank({ query = '', documents = [] }: PooledBody) {
  const wanted = query.split(' ');
  const results = documents.map((document, index) => {
    const words = document.split(' ');
    const shared = wanted.filter((word) => words.includes(word)).length;
    return { index, relevance_score: shared / wanted.length };
  });
  const prompt_tokens = countWords(documents) + countWords(query) * documents.length;
  return {
    results: results.toSorted((a, b) => b.relevance_score - a.relevance_score),
    usage: { prompt_tokens, total_tokens: prompt_tokens },
  };
}

/** Returns a vector of length one that depends only on the text. */
function toVector(text: string): Float32Array {
  const vector = Float32Array.from({ length: scriptedDimensions }, (_, at) => {
    let hash = at + 1;
    for (const char of text) hash = (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) >>> 0;
    return (hash % 2001) / 1000 - 1;
  });
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

const toBase64 = ({ buffer }: Float32Array) => Buffer.from(buffer).toString('base64');
