// A GGUF model on this machine as an engine. The model runs in a child process, which is started on first use and ended
// when idle. This file admits requests, sends them to the child and hands on their chunks.

import type { Cancellation } from '#http/client-disconnect.ts';
import { findConstraint } from '#inference/constraint.ts';
import type { Call, Engine, PoolingCall, Task } from '#inference/engine.ts';
import type { GrammarCompiler } from '#inference/engines/local/grammar-thread/grammar-compiler.ts';
import {
  type Answer,
  type ChildOptions,
  defaultContextSize,
  defaultLimits,
  defaultSequences,
  type Question,
  type RequestLimits,
} from '#inference/engines/local/protocol.ts';
import type { Embeddings, PoolingTask } from '#inference/pooling.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import type { EngineChunk, EngineResponse } from '#inference/wire/response.ts';
import type { QueueLimits } from '#lib/async/bounded-fair-queue.ts';
import { type ChildRequests, createChildRequests } from './child-requests.ts';
import { type ChunkStream, createChunkStream } from './chunk-stream.ts';
import { borrowNoGpu, type GpuLease } from './gpu-lease.ts';
import { chooseGrammar, unsupported } from './grammar-choice.ts';
import type { ProcessEvent } from './supervisor.ts';

export interface LocalEngineOptions {
  /** The name shown to clients, e.g. `builtin`. */
  name: string;
  modelPath: string;
  grammars: GrammarCompiler;
  /** The model stands in for a larger one and keeps that model's window. Default false. */
  standIn?: boolean;
  /** The model was trained with a start token before plain text, but its file does not ask for one. Default false. */
  startsText?: boolean;
  /** Null or absent: 1 on machines with up to 2 cores, otherwise one less than there are cores, at most 8. */
  threads?: number | null;
  /** Maximum number of choices generated at the same time. Default 8. */
  sequences?: number;
  /** Tokens per sequence. Null or absent: the model's own window, up to 8,192. */
  contextSize?: number | null;
  /** Called at each load. Default: the model runs on the CPU. */
  borrowGpu?: () => Promise<GpuLease>;
  /** The library with GPU kernels, called at each load. Null or absent: the CPU, or Metal. */
  findKernels?: () => string | null;
  /** Temperature of a request that sets none. Default 1. */
  temperature?: number;
  /** The child is ended after this time without a request. Null or absent keeps it. */
  idleMs?: number | null;
  /** Maximum memory of weights and cache, called at each load. Null for no bound. */
  maxMemoryBytes?: () => number | null;
  /** Bounds of the queue, read at each use. Default: 256 requests, 60 s. */
  queue?: QueueLimits;
  limits?: Partial<RequestLimits>;
  onEvent?: (event: ProcessEvent) => void;
}

interface LocalEngineStatus {
  loaded: boolean;
  pid: number | null;
  /** Requests that have not ended. */
  requests: number;
  /** Requests that wait for their first sequence. */
  queued: number;
  /** Sequences in use. */
  running: number;
  /** Choices that wait for a sequence. */
  waiting: number;
}

export interface LocalEngine extends Engine {
  stream(task: Task, call: Call): Promise<AsyncIterable<EngineChunk>>;
  countPromptTokens(task: Task, signal: Cancellation): Promise<number>;
  /** Loads the model before the first request. Throws EngineError. */
  preload(): Promise<void>;
  status(): LocalEngineStatus;
  /**
   * Tokens that a sequence can hold, or an upper bound until the model is loaded. Null for a stand-in, which cuts long
   * prompts instead.
   */
  contextWindow(): number | null;
  /** Ends the child unless it has requests. */
  unload(): Promise<void>;
}

const defaultQueue: QueueLimits = { maxLength: 256, maxWaitMs: 60_000 };

export function createLocalEngine(options: LocalEngineOptions): LocalEngine {
  const limits = { ...defaultLimits, ...options.limits };
  let window = options.standIn ? null : (options.contextSize ?? defaultContextSize);
  const requests = createChildRequests({
    name: options.name,
    toChildOptions: () => toChildOptions(options, limits),
    borrowGpu: options.borrowGpu ?? borrowNoGpu,
    queue: options.queue ?? defaultQueue,
    sequences: options.sequences ?? defaultSequences,
    idleMs: options.idleMs ?? null,
    onEvent(event) {
      if (event.kind === 'ready' && window !== null) window = event.window;
      options.onEvent?.(event);
    },
  });

  async function begin(task: Task, call: Call): Promise<ChunkStream> {
    const grammars = await chooseGrammar(task, options.grammars, call);
    const { caller, priority, contextWindow } = call;
    const context = { caller, priority, contextWindow, ...grammars };
    const stream = createChunkStream(() => cancel());
    const cancel = requests.send(call, (id) => ({ kind: 'start', id, task, context }), {
      chunk(chunk, soFar) {
        call.onUsage?.(soFar);
        stream.push(chunk);
      },
      usage: (soFar) => call.onUsage?.(soFar),
      ended: stream.end,
      failed: stream.fail,
    });
    return stream;
  }

  return {
    name: options.name,
    async stream(task, call) {
      const stream = await begin(task, call);
      await stream.first();
      return stream;
    },
    async respond(task, call): Promise<EngineResponse> {
      const chunks: EngineChunk[] = [];
      for await (const chunk of await begin(task, call)) chunks.push(chunk);
      return foldChunks(task.kind, chunks);
    },
    ...createChildAnswers(requests),
    refusalOf({ body }) {
      const constraint = findConstraint(body);
      return constraint?.kind === 'structural_tag' ? unsupported(constraint.param) : null;
    },
    preload: requests.preload,
    status: requests.status,
    contextWindow: () => window,
    unload: requests.unload,
    close: requests.close,
  };
}

function toChildOptions(
  options: LocalEngineOptions,
  limits: RequestLimits,
): Omit<ChildOptions, 'gpu' | 'device'> {
  return {
    modelPath: options.modelPath,
    kernels: options.findKernels?.() ?? null,
    threads: options.threads ?? null,
    sequences: options.sequences ?? defaultSequences,
    contextSize: options.contextSize ?? null,
    maxMemoryBytes: options.maxMemoryBytes?.() ?? null,
    standIn: options.standIn ?? false,
    startsText: options.startsText ?? false,
    temperature: options.temperature ?? 1,
    limits,
  };
}

type ChildAnswers = Required<
  Pick<Engine, 'embed' | 'rerank' | 'tokenize' | 'detokenize' | 'countPromptTokens'>
>;

/** What the child computes besides generated text: vectors of texts, scores of documents, and answers about tokens. */
const createChildAnswers = (requests: ChildRequests) =>
  ({
    embed: async (task, call) => pool(requests, task, call),
    async rerank(task, call) {
      const { vectors, promptTokens } = await pool(requests, task, call);
      return { scores: vectors.map(([score]) => score ?? 0), promptTokens };
    },
    tokenize: async (task, signal) => ask(requests, { kind: 'tokenize', task }, signal),
    detokenize: async (tokens, signal) => ask(requests, { kind: 'detokenize', tokens }, signal),
    countPromptTokens: async (task, signal): Promise<number> =>
      ask(requests, { kind: 'count', task }, signal),
  }) satisfies ChildAnswers;

/** The child answers each kind of question with its own kind of answer. */
function ask<Kind extends Answer>(
  requests: ChildRequests,
  question: Question,
  signal: Cancellation,
): Promise<Kind> {
  const { promise, resolve, reject } = Promise.withResolvers<Kind>();
  const listener = { answer: (given: Answer) => resolve(given as Kind), failed: reject };
  requests.send({ signal, caller: 'count' }, (id) => ({ kind: 'ask', id, question }), listener);
  return promise;
}

function pool(requests: ChildRequests, task: PoolingTask, call: PoolingCall): Promise<Embeddings> {
  const { promise, resolve, reject } = Promise.withResolvers<Embeddings>();
  const { caller, priority } = call;
  const vectors: Float32Array[] = [];
  let promptTokens = 0;
  requests.send(call, (id) => ({ kind: 'pool', id, task, context: { caller, priority } }), {
    vector(index, vector, soFar) {
      vectors[index] = vector;
      promptTokens = soFar.prompt_tokens;
      call.onUsage?.(soFar);
    },
    ended: () => resolve({ vectors, promptTokens }),
    failed: reject,
  });
  return promise;
}
