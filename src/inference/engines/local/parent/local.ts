// A GGUF model on this machine as an engine. The model lives in a child process, loaded on first use and
// let go when idle; here requests are admitted, sent to the child, and their chunks handed on.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { Call, Engine, EngineChunk, EngineResponse, Task } from '#inference/engine.ts';
import type { RequestLimits } from '#inference/engines/local/child/runtime.ts';
import { defaultContextSize } from '#inference/engines/local/child/prompt/context-window.ts';
import { foldChunks } from '#inference/fold.ts';
import type { AdmissionLimits } from './admission.ts';
import { type ChunkStream, createChunkStream } from './chunk-stream.ts';
import { createExchange } from './child-requests.ts';
import { chooseGrammar, type Grammars } from './grammar-choice.ts';
import type { ProcessEvent } from './supervisor.ts';

export interface LocalEngineOptions {
  /** Shown to clients, e.g. `builtin`. */
  name: string;
  modelPath: string;
  grammars: Grammars;
  /** It answers for a larger model and keeps that model's window. */
  standIn?: boolean;
  /** The model was trained with a start token before plain text though its file does not ask for it. */
  startsText?: boolean;
  /** Null or absent: one on small machines, else one less than there are cores, eight at most. */
  threads?: number | null;
  /** Answers generated at the same time. */
  sequences?: number;
  /** Tokens per sequence; absent: the model's own window, up to 8,192. */
  contextSize?: number | null;
  gpu?: 'auto' | false;
  /** Used when a request names none. */
  temperature?: number;
  /** The model is let go after so long without a request. Null keeps it. */
  idleMs?: number | null;
  /** Bytes that weights and cache may take, asked at each load; null for no limit. */
  memoryLimit?: () => number | null;
  limits?: Partial<AdmissionLimits & RequestLimits>;
  onEvent?: (event: ProcessEvent) => void;
}

export interface LocalEngineStatus {
  loaded: boolean;
  pid: number | null;
  /** Requests that are not answered yet. */
  requests: number;
  /** Requests without a sequence so far. */
  queued: number;
  /** Sequences generating now. */
  running: number;
  /** Choices waiting for a sequence. */
  waiting: number;
}

export interface LocalEngine extends Engine {
  stream(task: Task, call: Call): Promise<AsyncIterable<EngineChunk>>;
  countPromptTokens(task: Task, signal: Cancellation): Promise<number>;
  /** Loads the model before it is asked for. Throws EngineError. */
  preload(): Promise<void>;
  status(): LocalEngineStatus;
  /** What it can hold, or a bound while it was never loaded; null for a stand-in, which cuts instead. */
  contextWindow(): number | null;
  /** Lets the model go unless it is being used. */
  unload(): Promise<void>;
}

const defaultLimits: AdmissionLimits & RequestLimits = {
  waiting: 64,
  waitMs: 30_000,
  choices: 1024,
  completionTokens: 1_000_000,
  waitingPromptTokens: 1_000_000,
};

const noGrammar = { grammar: null, lazyGrammar: null };

export function createLocalEngine(options: LocalEngineOptions): LocalEngine {
  const limits = { ...defaultLimits, ...options.limits };
  let window = options.standIn ? null : (options.contextSize ?? defaultContextSize);
  const exchange = createExchange(
    options.name,
    () => ({
      modelPath: options.modelPath,
      gpu: options.gpu ?? false,
      threads: options.threads ?? null,
      sequences: options.sequences ?? 8,
      contextSize: options.contextSize ?? null,
      memoryLimitBytes: options.memoryLimit?.() ?? null,
      standIn: options.standIn ?? false,
      startsText: options.startsText ?? false,
      temperature: options.temperature ?? 1,
      limits,
    }),
    { admission: limits, idleMs: options.idleMs ?? null },
    (event) => {
      if (event.kind === 'ready' && window !== null) window = event.window;
      options.onEvent?.(event);
    },
  );

  async function begin(task: Task, call: Call): Promise<ChunkStream> {
    const grammars =
      task.kind === 'chat' ? await chooseGrammar(task.body, options.grammars, call) : noGrammar;
    const { caller, priority, contextWindow } = call;
    const context = { caller, priority, contextWindow, ...grammars };
    const stream = createChunkStream(() => giveUp());
    const giveUp = exchange.ask(call, (id) => ({ kind: 'start', id, task, context }), {
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
    async countPromptTokens(task, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const listener = { counted: resolve, failed: reject };
      exchange.ask({ signal, caller: 'count' }, (id) => ({ kind: 'count', id, task }), listener);
      return promise;
    },
    preload: exchange.preload,
    status: exchange.status,
    contextWindow: () => window,
    unload: exchange.unload,
    close: exchange.close,
  };
}
