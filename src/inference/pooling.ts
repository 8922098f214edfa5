// What engines compute besides generated text: embeddings, the relevance of documents, and tokens. Part of the boundary
// in engine.ts.

import type { ChatRequest } from './schema.ts';

/** What a model was made for. */
export type ModelKind = 'chat' | 'embedding' | 'rerank';

/** What a model of each kind does, and where its requests go. */
export const modelUses: Readonly<Record<ModelKind, { does: string; endpoint: string }>> = {
  chat: { does: 'generates text', endpoint: '/v1/chat/completions' },
  embedding: { does: 'embeds texts', endpoint: '/v1/embeddings' },
  rerank: { does: 'ranks documents', endpoint: '/v1/rerank' },
};

export interface EmbedTask {
  readonly kind: 'embed';
  /** Texts or token ids, none of them empty. */
  readonly inputs: readonly (string | readonly number[])[];
}

export interface RerankTask {
  readonly kind: 'rerank';
  readonly query: string;
  readonly documents: readonly string[];
}

export type PoolingTask = EmbedTask | RerankTask;

export interface Embeddings {
  /** One for each input, in the same order and all of the same length. */
  readonly vectors: readonly Float32Array[];
  /** Tokens of all inputs; null if the engine can't count them. */
  readonly promptTokens: number | null;
}

export interface Ranking {
  /** The relevance of each document from 0 to 1, in the order of the documents. */
  readonly scores: readonly number[];
  /** Tokens of all documents, each together with the query; null if the engine can't count them. */
  readonly promptTokens: number | null;
}

export interface TokenizeTask {
  /** A text, or a conversation that the model's template turns into one. */
  readonly source: { readonly prompt: string } | { readonly chat: ChatRequest };
  /** Whether the special tokens around a prompt are added. A template writes its own. */
  readonly addsSpecial: boolean;
  /** Whether the text of each token is wanted. */
  readonly withTexts: boolean;
}

export interface Tokens {
  readonly tokens: readonly number[];
  /** Null if not wanted, or if the engine does not report them. */
  readonly texts: readonly string[] | null;
}

/** The texts of a task, as a client wrote them. */
const textsOf = (task: PoolingTask): readonly (string | readonly number[])[] =>
  task.kind === 'embed' ? task.inputs : task.documents;

/** Special tokens that a model may add to one text, and to a pair of texts. */
const maxSpecialTokens = 8;

/** Upper bound of the tokens that all texts have together: a token of text is at least one byte. */
export function maxTokensOf(task: PoolingTask, contextWindow: number): number {
  const query = task.kind === 'rerank' ? Buffer.byteLength(task.query) : 0;
  let sum = 0;
  for (const text of textsOf(task)) {
    const own = typeof text === 'string' ? Buffer.byteLength(text) : text.length;
    sum += Math.min(own + query + maxSpecialTokens, contextWindow);
  }
  return sum;
}
