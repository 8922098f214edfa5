// Embeddings and reranking by a server with OpenAI's and Jina's API. A large request is sent in several, so that no
// response is so large that reading it holds up other requests.

import { type Engine, EngineError, type PoolingCall } from '#inference/engine.ts';
import {
  type BufferedResponse,
  fetchWhole,
} from '#inference/engines/upstream/plain/buffered-response.ts';
import { type EmbedTask, maxTokensOf, type PoolingTask } from '#inference/pooling.ts';
import { newUsage } from '#inference/wire/response.ts';
import { orUnreadable, toFailure, unreadable } from './failures.ts';
import type { UpstreamServer } from './servers.ts';
import type { UpstreamClient } from './upstream-client.ts';
import { type ImplausibleCounts, toUsage, UsageCheck } from './usage.ts';

export interface PoolingOptions {
  readonly model: string;
  readonly server: UpstreamServer;
  readonly onImplausible?: ((counts: ImplausibleCounts) => void) | undefined;
}

/** Texts sent in one request. */
const maxTexts = 128;

export function createUpstreamPooling(
  client: UpstreamClient,
  options: PoolingOptions,
): Pick<Engine, 'embed' | 'rerank'> {
  const { model, server } = options;
  const toScores = createScoreReader();
  const pooling: Pick<Engine, 'embed' | 'rerank'> = {
    async embed({ inputs }, call) {
      const vectors: Float32Array[] = [];
      const counts = new PromptCounts(options, call);
      for (let at = 0; at < inputs.length; at += maxTexts) {
        const task = { kind: 'embed', inputs: inputs.slice(at, at + maxTexts) } as const;
        const body = { model, input: toInput(task), encoding_format: 'base64' };
        const given = await post(client, '/embeddings', body, call);
        counts.add(task, given);
        for (const vector of read(() => toVectors(given.body, task.inputs.length)))
          vectors.push(vector);
      }
      if (vectors.some(({ length }) => length !== vectors[0]?.length))
        throw unreadable('sent embeddings of different lengths');
      return { vectors, promptTokens: counts.sum };
    },
    async rerank({ query, documents }, call) {
      const scores: number[] = [];
      const counts = new PromptCounts(options, call);
      for (let at = 0; at < documents.length; at += maxTexts) {
        const some = documents.slice(at, at + maxTexts);
        const body = { model, query, documents: some, return_documents: false };
        const given = await post(client, '/rerank', body, call);
        counts.add({ kind: 'rerank', query, documents: some }, given);
        for (const score of read(() => toRanks(given.body, some.length))) scores.push(score);
      }
      return { scores: toScores(scores), promptTokens: counts.sum };
    },
  };
  // Ollama has no endpoint for it.
  return server === 'ollama' ? { embed: pooling.embed } : pooling;
}

/** A single list of token ids must be sent in a list, or each id would be an input. */
function toInput({ inputs }: EmbedTask): unknown {
  return inputs.length === 1 && typeof inputs[0] === 'string' ? inputs[0] : inputs;
}

interface PoolingResponse {
  readonly body: unknown;
  readonly bytes: number;
}

async function post(
  client: UpstreamClient,
  path: '/embeddings' | '/rerank',
  body: Record<string, unknown>,
  { signal, headers, onWork }: PoolingCall,
): Promise<PoolingResponse> {
  const text = JSON.stringify(body);
  const request = { method: 'POST', path, body: text, headers, signal } as const;
  const response = await fetchWhole(client, request, onWork);
  if (response.status !== 200) throw toPoolingFailure(path, body, response);
  return { body: read(() => JSON.parse(response.text) as unknown), bytes: response.size };
}

/** A server without the endpoint is sound, but its model is of another kind. */
function toPoolingFailure(
  path: '/embeddings' | '/rerank',
  body: Record<string, unknown>,
  { status, headers, text }: BufferedResponse,
): EngineError {
  const isMissing = status === 405 || status === 501 || (status === 404 && !/model/i.test(text));
  if (!isMissing) return toFailure(status, headers, text, { kind: 'pooling', body });
  const what = path === '/rerank' ? 'rank documents' : 'embed texts';
  const message = `The backend of this model can't ${what}. Name a model that can.`;
  return new EngineError('rejected', message, { code: 'model_not_supported', param: 'model' });
}

function read<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    throw orUnreadable(error);
  }
}

function toVectors(body: unknown, count: number): Float32Array[] {
  const rows = toRows((body as { data?: unknown }).data, count);
  return rows.map(({ embedding }) => {
    const vector = typeof embedding === 'string' ? decode(embedding) : toFloats(embedding);
    if (vector.length === 0 || !vector.every(Number.isFinite))
      throw unreadable('sent an embedding that is not a list of numbers');
    return vector;
  });
}

function decode(base64: string): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'));
  if (bytes.length % 4 !== 0) throw unreadable('sent an embedding that is cut off');
  return new Float32Array(bytes.buffer);
}

/** Some servers ignore `encoding_format`. */
function toFloats(given: unknown): Float32Array {
  return Array.isArray(given) ? Float32Array.from(given, Number) : new Float32Array(0);
}

/** SGLang sends the list itself, and calls the relevance a score. */
function toRanks(body: unknown, count: number): number[] {
  const list = Array.isArray(body) ? body : (body as { results?: unknown }).results;
  return toRows(list, count).map(({ relevance_score, score }) => {
    const rank = relevance_score ?? score;
    if (typeof rank === 'number' && Number.isFinite(rank)) return rank;
    throw unreadable('sent a relevance that is not a number');
  });
}

/** The rows in the order of their indexes, each of which must be there once. */
function toRows(list: unknown, count: number): Record<string, unknown>[] {
  const rows: Record<string, unknown>[] = [];
  for (const row of Array.isArray(list) ? list : []) rows[row?.index] = row;
  if (rows.length !== count || Object.keys(rows).length !== count)
    throw unreadable('did not respond to each of the texts');
  return rows;
}

/**
 * vLLM and hosted services send probabilities. llama-server sends logits of most models, which are recognised by the
 * first one below 0 or above 1: from then on, all scores of the backend are converted.
 */
function createScoreReader(): (scores: readonly number[]) => number[] {
  let areLogits = false;
  return (scores) => {
    areLogits ||= scores.some((score) => score < 0 || score > 1);
    return scores.map((score) => (areLogits ? 1 / (1 + Math.exp(-score)) : score));
  };
}

/** The sum of prompt tokens over the parts of a request. Null once a part has no plausible count. */
class PromptCounts {
  readonly #options: PoolingOptions;
  readonly #call: PoolingCall;
  sum: number | null = 0;

  constructor(options: PoolingOptions, call: PoolingCall) {
    this.#options = options;
    this.#call = call;
  }

  add(task: PoolingTask, { body, bytes }: PoolingResponse): void {
    const promptTokens = maxTokensOf(task, this.#call.contextWindow);
    const bounds = { promptTokens, completionTokens: 0, unseenTokens: 0 };
    const check = new UsageCheck(bounds, this.#options.onImplausible);
    const given = toUsage((body as { usage?: unknown })?.usage);
    const usage = given === null ? null : check.accept(given, bytes);
    const counted = usage?.prompt_tokens ?? 0;
    this.sum = this.sum === null || counted === 0 ? null : this.sum + counted;
    if (this.sum !== null) this.#call.onUsage?.(newUsage(this.sum, 0));
  }
}
