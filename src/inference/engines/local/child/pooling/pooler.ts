// Computes the vectors of embedding requests and the scores of rerank requests, one text at a time: callers take turns,
// and a request that is cancelled stops after the text that is being read.

import type { Binding } from '#inference/engines/local/child/binding.ts';
import { tooManyWaitingPromptTokens } from '#inference/engines/local/child/errors.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { PoolingContext } from '#inference/engines/local/protocol.ts';
import type { PoolingTask } from '#inference/pooling.ts';
import { newUsage, type Usage } from '#inference/wire/response.ts';
import { FairQueue } from '#lib/async/fair-queue.ts';
import { toPooledTexts } from './pooled-texts.ts';

export interface PoolingRequest {
  readonly task: PoolingTask;
  readonly context: PoolingContext;
  readonly output: PoolingOutput;
}

export interface PoolingOutput {
  /** Called when the first text is read. */
  started(): void;
  vector(index: number, vector: Float32Array, soFar: Usage): void;
  /** Called last, unless the request fails. */
  ended(): void;
  failed(error: Error): void;
}

interface Job {
  readonly request: PoolingRequest;
  readonly texts: readonly Uint32Array[];
  next: number;
  promptTokens: number;
  isCancelled: boolean;
}

export class Pooler {
  readonly #binding: Binding;
  readonly #vocabulary: Vocabulary;
  readonly #maxWaitingTokens: number;
  readonly #afterText: () => void;
  readonly #queue = new FairQueue<Job>();
  #waitingTokens = 0;
  #current: Job | null = null;
  #loop: Promise<void> | null = null;
  #isStopped = false;

  /** `afterText` is called when output has been produced. */
  constructor(
    binding: Binding,
    vocabulary: Vocabulary,
    maxWaitingTokens: number,
    afterText: () => void,
  ) {
    this.#binding = binding;
    this.#vocabulary = vocabulary;
    this.#maxWaitingTokens = maxWaitingTokens;
    this.#afterText = afterText;
  }

  get running(): number {
    return this.#current === null ? 0 : 1;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Returns a function that cancels the request. Failures, refusals included, go to `output.failed`. */
  start(request: PoolingRequest): () => void {
    let job: Job | null = null;
    let isCancelled = false;
    toPooledTexts({ binding: this.#binding, vocabulary: this.#vocabulary }, request.task)
      .then((texts) => {
        if (!isCancelled) job = this.#submit(request, texts);
      })
      .catch((error: Error) => request.output.failed(error));
    return () => {
      isCancelled = true;
      if (job !== null) this.#cancel(job);
    };
  }

  /** Resolves when the current text has been read. Nothing runs after it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
  }

  /** Throws EngineError `overloaded` if too much waits already. */
  #submit(request: PoolingRequest, texts: readonly Uint32Array[]): Job {
    const tokens = texts.reduce((sum, { length }) => sum + length, 0);
    if (this.#waitingTokens > 0 && this.#waitingTokens + tokens > this.#maxWaitingTokens)
      throw tooManyWaitingPromptTokens();
    const job: Job = { request, texts, next: 0, promptTokens: 0, isCancelled: false };
    this.#waitingTokens += tokens;
    this.#enqueue(job);
    this.#loop ??= this.#runLoop();
    return job;
  }

  #enqueue(job: Job): void {
    const { caller, priority } = job.request.context;
    this.#queue.push(caller, job, priority);
  }

  #cancel(job: Job): void {
    const { caller, priority } = job.request.context;
    job.isCancelled = true;
    this.#queue.remove(caller, job, priority);
    for (const { length } of job.texts.slice(job.next)) this.#waitingTokens -= length;
    job.next = job.texts.length;
  }

  async #runLoop(): Promise<void> {
    while (!this.#isStopped) {
      const job = this.#queue.take(() => true);
      if (job === undefined) break;
      this.#current = job;
      await this.#readNext(job);
      this.#current = null;
      this.#afterText();
      // Messages that cancel requests are read in between.
      await new Promise(setImmediate);
    }
    this.#loop = null;
  }

  /** Reads one text of a request, and puts the request back in the queue if it has more. */
  async #readNext(job: Job): Promise<void> {
    const { output } = job.request;
    const index = job.next++;
    const tokens = job.texts[index] ?? new Uint32Array(0);
    this.#waitingTokens -= tokens.length;
    if (index === 0) output.started();
    try {
      const vector = await computeVector(this.#binding, tokens);
      if (job.isCancelled) return;
      job.promptTokens += tokens.length;
      output.vector(index, vector, newUsage(job.promptTokens, 0));
      if (job.next < job.texts.length) this.#enqueue(job);
      else output.ended();
    } catch (error) {
      if (job.isCancelled) return;
      this.#cancel(job);
      output.failed(error as Error);
    }
  }
}

async function computeVector(binding: Binding, tokens: Uint32Array): Promise<Float32Array> {
  const { context, modelKind } = binding;
  context.initBatch(tokens.length);
  // Every token contributes to the vector.
  context.addToBatch(0, 0, tokens, Uint32Array.from(tokens.keys()));
  await context.decodeBatch();
  const pooled = context.getEmbedding(tokens.length, modelKind === 'rerank' ? 1 : undefined);
  context.disposeSequence(0);
  if (modelKind !== 'rerank') return toUnitLength(pooled);
  const score = pooled[0] ?? 0;
  return Float32Array.of(binding.scoresAreProbabilities ? score : 1 / (1 + Math.exp(-score)));
}

/** Clients compare vectors by their dot product, which is the cosine only if their length is one. */
function toUnitLength(vector: Float64Array): Float32Array {
  const length = Math.hypot(...vector);
  return Float32Array.from(vector, (value) => (length === 0 ? 0 : value / length));
}
