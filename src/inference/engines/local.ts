// A GGUF model on this machine as an engine. The model lives in a child process, loaded on first use and
// let go when idle; here requests are admitted, sent to the child, and their chunks handed on.

import {
  type Call,
  type Engine,
  type EngineAnswer,
  type EngineChunk,
  EngineError,
  type Task,
  type Usage,
} from '../engine.ts';
import { foldChunks } from '../fold.ts';
import { type AdmissionLimits, createAdmission } from './local/admission.ts';
import { type ChunkStream, createChunkStream } from './local/chunk-stream.ts';
import type { RequestLimits } from './local/core.ts';
import { chooseGrammar, type Grammars } from './local/grammar-choice.ts';
import type { ToParent, WireFailure } from './local/protocol.ts';
import { createSupervisor, type ProcessEvent } from './local/supervisor.ts';

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
  memoryLimitBytes?: number | null;
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
  /** Loads the model before it is asked for. Throws EngineError. */
  preload(): Promise<void>;
  status(): LocalEngineStatus;
}

const defaultLimits: AdmissionLimits & RequestLimits = {
  waiting: 64,
  waitMs: 30_000,
  choices: 1024,
  completionTokens: 1_000_000,
  waitingPromptTokens: 1_000_000,
};

/** What the child's messages about one request lead to. */
interface Outstanding {
  started(): void;
  chunk(chunk: EngineChunk, soFar: Usage): void;
  ended(): void;
  counted(tokens: number): void;
  failed(error: unknown): void;
}

export function createLocalEngine(options: LocalEngineOptions): LocalEngine {
  const limits = { ...defaultLimits, ...options.limits };
  const admission = createAdmission(limits);
  const outstanding = new Map<number, Outstanding>();
  const nothing = { running: 0, waiting: 0 };
  let load = nothing;
  let lastId = 0;

  const supervisor = createSupervisor(
    options.name,
    {
      modelPath: options.modelPath,
      gpu: options.gpu ?? false,
      threads: options.threads ?? null,
      sequences: options.sequences ?? 8,
      contextSize: options.contextSize ?? null,
      memoryLimitBytes: options.memoryLimitBytes ?? null,
      standIn: options.standIn ?? false,
      startsText: options.startsText ?? false,
      temperature: options.temperature ?? 1,
      limits,
    },
    options.idleMs ?? null,
    {
      message: receive,
      gone(error) {
        load = nothing;
        for (const request of [...outstanding.values()]) request.failed(error);
      },
      event: options.onEvent ?? (() => {}),
    },
  );

  function receive(message: ToParent): void {
    if (message.kind === 'counted') outstanding.get(message.id)?.counted(message.tokens);
    if (message.kind === 'failed') outstanding.get(message.id)?.failed(toError(message.failure));
    if (message.kind !== 'batch') return;
    load = message.load;
    for (const event of message.events) {
      const request = outstanding.get(event.id);
      if (event.kind === 'started') request?.started();
      else if (event.kind === 'ended') request?.ended();
      else request?.chunk(event.chunk, event.soFar);
    }
  }

  function toError({ failure, message, code, param }: WireFailure): EngineError {
    if (failure === 'overloaded') return admission.overloaded(message);
    return new EngineError(failure, message, {
      ...(code !== null && { code }),
      ...(param !== null && { param }),
    });
  }

  function add(request: Outstanding): number {
    supervisor.ensure();
    const id = ++lastId;
    outstanding.set(id, request);
    supervisor.busy(true);
    return id;
  }

  function remove(id: number): boolean {
    const known = outstanding.delete(id);
    if (outstanding.size === 0) supervisor.busy(false);
    return known;
  }

  /** Admits the request and sends it to the child. Throws EngineError, or the signal's reason. */
  function begin(task: Task, call: Call): ChunkStream {
    call.signal.throwIfAborted();
    const grammars = task.kind === 'chat' ? chooseGrammar(task.body, options.grammars) : noGrammar;
    const stream = createChunkStream(() => leave());
    const ticket = admission.enter((error) => leave(error));

    /** Ends the request here; the child is told unless it ended it itself. */
    function leave(error?: unknown, finished = false): void {
      ticket.left();
      call.signal.removeEventListener('abort', abort);
      if (error !== undefined) stream.fail(error);
      if (remove(id) && !finished) supervisor.send({ kind: 'cancel', id });
    }
    function abort(): void {
      leave(call.signal.reason);
    }

    let id = 0;
    try {
      id = add({
        started: ticket.started,
        chunk(chunk, soFar) {
          call.onUsage?.(soFar);
          stream.push(chunk);
        },
        ended() {
          supervisor.healthy();
          stream.end();
          leave(undefined, true);
        },
        counted() {},
        failed: (error) => leave(error, true),
      });
    } catch (error) {
      ticket.left();
      throw error;
    }
    call.signal.addEventListener('abort', abort);
    const { caller, contextWindow } = call;
    supervisor.send({ kind: 'start', id, task, context: { caller, contextWindow, ...grammars } });
    return stream;
  }

  return {
    name: options.name,
    async stream(task, call) {
      const stream = begin(task, call);
      await stream.first();
      return stream;
    },
    async answer(task, call): Promise<EngineAnswer> {
      const chunks: EngineChunk[] = [];
      for await (const chunk of begin(task, call)) chunks.push(chunk);
      return foldChunks(task.kind, chunks);
    },
    countPromptTokens(task, signal) {
      signal.throwIfAborted();
      return new Promise<number>((resolve, reject) => {
        const settle = () => {
          signal.removeEventListener('abort', abort);
          remove(id);
        };
        const abort = () => {
          settle();
          reject(signal.reason);
        };
        const id = add({
          started() {},
          chunk() {},
          ended() {},
          counted(tokens) {
            settle();
            resolve(tokens);
          },
          failed(error) {
            settle();
            reject(error);
          },
        });
        signal.addEventListener('abort', abort);
        supervisor.send({ kind: 'count', id, task });
      });
    },
    async preload() {
      supervisor.ensure();
      await supervisor.ready();
      if (outstanding.size === 0) supervisor.busy(false);
    },
    status: () => ({
      loaded: supervisor.loaded,
      pid: supervisor.pid,
      requests: outstanding.size,
      queued: admission.waiting,
      ...load,
    }),
    close: supervisor.close,
  };
}

const noGrammar = { grammar: null, lazyGrammar: null };
