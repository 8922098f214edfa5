// Computes the vectors of embedding requests and the scores of rerank requests, one text at a time: callers take turns,
// and a request that is cancelled stops after the text that is being read.

import { newUsage, type Usage } from '#inference/engine.ts';
import type { Binding } from '#inference/engines/local/child/binding.ts';
import { tooManyWaitingPromptTokens } from '#inference/engines/local/child/errors.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { PoolingContext } from '#inference/engines/local/protocol.ts';
import type { PoolingTask } from '#inference/pooling.ts';
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

export interface Pooler {
  /** Returns a function that cancels the request. Failures, refusals included, go to `output.failed`. */
  start(request: PoolingRequest): () => void;
  readonly running: number;
  readonly waiting: number;
  /** Resolves when the current text has been read. Nothing runs after it. */
  stop(): Promise<void>;
}

interface Job {
  readonly request: PoolingRequest;
  readonly texts: readonly Uint32Array[];
  next: number;
  promptTokens: number;
  isCancelled: boolean;
}

interface PoolerState {
  readonly binding: Binding;
  readonly maxWaitingTokens: number;
  readonly afterText: () => void;
  readonly queue: FairQueue<Job>;
  waitingTokens: number;
  current: Job | null;
  loop: Promise<void> | null;
  isStopped: boolean;
}

/** `afterText` is called when output has been produced. */
export function createPooler(
  binding: Binding,
  vocabulary: Vocabulary,
  maxWaitingTokens: number,
  afterText: () => void,
): Pooler {
  const state: PoolerState = {
    binding,
    maxWaitingTokens,
    afterText,
    queue: new FairQueue<Job>(),
    waitingTokens: 0,
    current: null,
    loop: null,
    isStopped: false,
  };
  return {
    start(request) {
      let job: Job | null = null;
      let isCancelled = false;
      toPooledTexts({ binding, vocabulary }, request.task)
        .then((texts) => {
          if (!isCancelled) job = submit(state, request, texts);
        })
        .catch((error: Error) => request.output.failed(error));
      return () => {
        isCancelled = true;
        if (job !== null) cancel(state, job);
      };
    },
    get running() {
      return state.current === null ? 0 : 1;
    },
    get waiting() {
      return state.queue.size;
    },
    async stop() {
      state.isStopped = true;
      await state.loop;
    },
  };
}

/** Throws EngineError `overloaded` if too much waits already. */
function submit(state: PoolerState, request: PoolingRequest, texts: readonly Uint32Array[]): Job {
  const tokens = texts.reduce((sum, { length }) => sum + length, 0);
  if (state.waitingTokens > 0 && state.waitingTokens + tokens > state.maxWaitingTokens)
    throw tooManyWaitingPromptTokens();
  const job: Job = { request, texts, next: 0, promptTokens: 0, isCancelled: false };
  state.waitingTokens += tokens;
  enqueue(state, job);
  state.loop ??= runLoop(state);
  return job;
}

function enqueue({ queue }: PoolerState, job: Job): void {
  const { caller, priority } = job.request.context;
  queue.push(caller, job, priority);
}

function cancel(state: PoolerState, job: Job): void {
  const { caller, priority } = job.request.context;
  job.isCancelled = true;
  state.queue.remove(caller, job, priority);
  for (const { length } of job.texts.slice(job.next)) state.waitingTokens -= length;
  job.next = job.texts.length;
}

async function runLoop(state: PoolerState): Promise<void> {
  while (!state.isStopped) {
    const job = state.queue.take(() => true);
    if (job === undefined) break;
    state.current = job;
    await readNext(state, job);
    state.current = null;
    state.afterText();
    // Messages that cancel requests are read in between.
    await new Promise(setImmediate);
  }
  state.loop = null;
}

/** Reads one text of a request, and puts the request back in the queue if it has more. */
async function readNext(state: PoolerState, job: Job): Promise<void> {
  const { output } = job.request;
  const index = job.next++;
  const tokens = job.texts[index] ?? new Uint32Array(0);
  state.waitingTokens -= tokens.length;
  if (index === 0) output.started();
  try {
    const vector = await computeVector(state.binding, tokens);
    if (job.isCancelled) return;
    job.promptTokens += tokens.length;
    output.vector(index, vector, newUsage(job.promptTokens, 0));
    if (job.next < job.texts.length) enqueue(state, job);
    else output.ended();
  } catch (error) {
    if (job.isCancelled) return;
    cancel(state, job);
    output.failed(error as Error);
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
