// A GGUF model in this process as an engine, for a process that serves one model and nothing else.
// No messages pass between processes, and a crash of the native code ends this process. Node's pool
// must have one thread, or a sample could overtake its batch.

import type { Cancellation } from '#http/client-disconnect.ts';
import {
  type Call,
  type Engine,
  EngineError,
  type PoolingCall,
  type Task,
} from '#inference/engine.ts';
import { type LoadedModel, loadModel } from '#inference/engines/local/child/load.ts';
import { startNative } from '#inference/engines/local/child/native.ts';
import type { PoolingOutput } from '#inference/engines/local/child/pooling/pooler.ts';
import type { RequestOutput } from '#inference/engines/local/child/runtime.ts';
import type { GrammarCompiler } from '#inference/engines/local/grammar-thread/grammar-compiler.ts';
import {
  type ChunkStream,
  createChunkStream,
} from '#inference/engines/local/parent/chunk-stream.ts';
import { chooseGrammar } from '#inference/engines/local/parent/grammar-choice.ts';
import type { Embeddings, PoolingTask } from '#inference/pooling.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import type { EngineChunk, EngineResponse } from '#inference/wire/response.ts';
import { createOpenRequests, type OpenRequests } from './open-requests.ts';
import type { Answer, ChildOptions, ModelInfo, Question } from './protocol.ts';

export interface InProcessOptions extends ChildOptions {
  readonly name: string;
  readonly grammars: GrammarCompiler;
  /** Requests at once, whether they run or wait. */
  readonly maxRequests: number;
  /** Called when the model begins to load, is loaded, and was unloaded. */
  readonly onState?: (state: 'loading' | 'loaded' | 'unloaded') => void;
}

type Abilities = Required<Pick<Engine, 'embed' | 'rerank' | 'tokenize' | 'detokenize'>>;

export interface InProcessEngine extends Omit<Engine, keyof Abilities>, Abilities {
  stream: (...args: Parameters<Engine['stream']>) => Promise<AsyncIterable<EngineChunk>>;
  /** What was found out by loading the model, which is loaded if it never was. Throws EngineError. */
  describe(): Promise<ModelInfo>;
  /** Frees the memory of weights and cache until the next request. False if requests prevent it. */
  unload(): Promise<boolean>;
}

/** What the requests of an engine share. */
interface Parts {
  readonly grammars: GrammarCompiler;
  readonly requests: OpenRequests;
  readonly outbox: Outbox;
  readonly model: ReturnType<typeof createModel>;
}

export function createInProcessEngine(options: InProcessOptions): InProcessEngine {
  const { name, grammars, maxRequests } = options;
  const requests = createOpenRequests(name, maxRequests);
  const outbox = createOutbox();
  const model = createModel(options, outbox.flushSoon);
  const parts: Parts = { grammars, requests, outbox, model };
  return {
    name,
    async stream(task, call) {
      const stream = generate(parts, task, call);
      await stream.first();
      return stream;
    },
    async respond(task, call): Promise<EngineResponse> {
      const chunks: EngineChunk[] = [];
      for await (const chunk of generate(parts, task, call)) chunks.push(chunk);
      return foldChunks(task.kind, chunks);
    },
    embed: (task, call) => pool(parts, task, call),
    async rerank(task, call) {
      const { vectors, promptTokens } = await pool(parts, task, call);
      return { scores: vectors.map(([score]) => score ?? 0), promptTokens };
    },
    tokenize: (task, signal) => ask(parts, { kind: 'tokenize', task }, signal),
    detokenize: (tokens, signal) => ask(parts, { kind: 'detokenize', tokens }, signal),
    countPromptTokens: (task, signal) => ask(parts, { kind: 'count', task }, signal),
    describe: model.describe,
    async unload() {
      if (requests.areOpen()) return false;
      await model.unload();
      return true;
    },
    async close() {
      requests.close();
      await model.unload();
    },
  };
}

function generate(parts: Parts, task: Task, call: Call): ChunkStream {
  const { requests, outbox, model, grammars } = parts;
  const stream = createChunkStream(() => request.leave());
  const request = requests.enter(call.signal, stream.fail);
  const failed = (error: unknown) => {
    // What was generated before the failure is delivered first.
    outbox.flush();
    request.fail(toEngineError(error));
  };
  const output = toOutput(call, stream, outbox, () => request.leave());
  async function start(): Promise<void> {
    const [loaded, grammar] = await Promise.all([
      model.load(),
      chooseGrammar(task, grammars, call),
    ]);
    if (request.isOver) return;
    const { caller, priority, contextWindow } = call;
    const context = { caller, priority, contextWindow, ...grammar };
    request.cancel = loaded.start({ task, context, output: { ...output, failed } });
  }
  start().catch(failed);
  return stream;
}

async function pool(
  { requests, model }: Parts,
  task: PoolingTask,
  call: PoolingCall,
): Promise<Embeddings> {
  const { promise, resolve, reject } = Promise.withResolvers<Embeddings>();
  const request = requests.enter(call.signal, reject);
  const { caller, priority } = call;
  const vectors: Float32Array[] = [];
  let promptTokens = 0;
  const output: PoolingOutput = {
    started() {},
    vector(index, vector, soFar) {
      vectors[index] = vector;
      promptTokens = soFar.prompt_tokens;
    },
    ended: () => resolve({ vectors, promptTokens }),
    failed: (error) => reject(toEngineError(error)),
  };
  model.load().then(({ pooler }) => {
    if (request.isOver) return;
    request.cancel = pooler.start({ task, context: { caller, priority }, output });
  }, output.failed);
  try {
    return await promise;
  } finally {
    request.leave();
  }
}

async function ask<Kind extends Answer>(
  { requests, model }: Parts,
  question: Question,
  signal: Cancellation,
): Promise<Kind> {
  const { promise, resolve, reject } = Promise.withResolvers<Kind>();
  const request = requests.enter(signal, reject);
  const answered = model.load().then((loaded) => loaded.answer(question));
  answered.then(
    // Each kind of question has its own kind of answer.
    (answer) => resolve(answer as Kind),
    (error) => reject(toEngineError(error)),
  );
  try {
    return await promise;
  } finally {
    request.leave();
  }
}

/** A model that is loaded when it is needed. llama.cpp is started once in a process. */
function createModel({ onState, ...options }: InProcessOptions, afterBatch: () => void) {
  let native: ReturnType<typeof startNative> | null = null;
  let loading: Promise<LoadedModel> | null = null;
  let unloading: Promise<void> = Promise.resolve();
  let info: ModelInfo | null = null;
  const start: typeof startNative = (kernels) => {
    native ??= startNative(kernels);
    return native;
  };

  async function loadAfter(before: Promise<void>): Promise<LoadedModel> {
    await before;
    onState?.('loading');
    // One thread in the pool: this process has no second one that would take samples beside a GPU.
    const loaded = await loadModel(options, afterBatch, 1, start);
    info = loaded.binding;
    onState?.('loaded');
    return loaded;
  }

  function load(): Promise<LoadedModel> {
    if (loading !== null) return loading;
    const mine = loadAfter(unloading);
    loading = mine;
    // The next request tries again.
    mine.catch(() => {
      if (loading === mine) loading = null;
    });
    return mine;
  }

  return {
    load,
    describe: async () => info ?? (await load()).binding,
    async unload(): Promise<void> {
      const loaded = loading;
      loading = null;
      if (loaded === null) return unloading;
      unloading = loaded.then(
        async ({ close }) => {
          await close();
          onState?.('unloaded');
        },
        () => {},
      );
      return unloading;
    },
  };
}

interface Outbox {
  push(deliver: () => void): void;
  flush(): void;
  flushSoon(): void;
}

/** Delivers what a batch generated once the next one has started on its own thread. */
function createOutbox(): Outbox {
  let ready: (() => void)[] = [];
  let isScheduled = false;
  function flush(): void {
    isScheduled = false;
    const all = ready;
    ready = [];
    for (const deliver of all) deliver();
  }
  return {
    push: (deliver) => void ready.push(deliver),
    flush,
    flushSoon() {
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },
  };
}

function toOutput(
  { onUsage }: Call,
  stream: ChunkStream,
  outbox: Outbox,
  ended: () => void,
): Omit<RequestOutput, 'failed'> {
  return {
    started() {},
    chunk(chunk, soFar) {
      outbox.push(() => {
        onUsage?.(soFar);
        stream.push(chunk);
      });
    },
    counted: (soFar) => outbox.push(() => onUsage?.(soFar)),
    ended() {
      outbox.push(() => {
        stream.end();
        ended();
      });
    },
  };
}

const toEngineError = (error: unknown): EngineError =>
  error instanceof EngineError
    ? error
    : new EngineError('unavailable', (error as Error).message, { cause: error });
