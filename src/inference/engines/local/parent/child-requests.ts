// Requests on their way to the child and back: admitted, sent, listened for, and given up when their
// signal aborts, their wait is over or the child is gone.

import type { Cancellation } from '#http/client-disconnect.ts';
import { type EngineChunk, EngineError, type Usage } from '#inference/engine.ts';
import type { CoreOptions } from '#inference/engines/local/child/runtime.ts';
import type {
  ChildLoad,
  ToChild,
  ToParent,
  WireFailure,
} from '#inference/engines/local/protocol.ts';
import { type AdmissionLimits, createAdmission } from './admission.ts';
import { createSupervisor, type ProcessEvent } from './supervisor.ts';

/** After `ended`, `counted` or `failed` nothing more is called. */
export interface Listener {
  chunk?(chunk: EngineChunk, soFar: Usage): void;
  usage?(soFar: Usage): void;
  ended?(): void;
  counted?(tokens: number): void;
  failed(error: unknown): void;
}

/** Who asks, and until when. */
export interface Caller {
  signal: Cancellation;
  caller: string;
}

export interface Exchange {
  /**
   * Sends the message that is made for a new id. Returns a function that gives the request up. Throws
   * EngineError when it can't be sent, and the signal's reason when that is aborted already.
   */
  ask(from: Caller, toMessage: (id: number) => ToChild, listener: Listener): () => void;
  preload(): Promise<void>;
  status(): ExchangeStatus;
  /** Lets the model go unless it is being used. */
  unload(): Promise<void>;
  close(): Promise<void>;
}

export interface ExchangeStatus extends ChildLoad {
  loaded: boolean;
  pid: number | null;
  requests: number;
  queued: number;
}

interface Entry {
  listener: Listener;
  started(): void;
  leave(): void;
}

const nothing: ChildLoad = { running: 0, waiting: 0 };

export function createExchange(
  name: string,
  toCore: () => CoreOptions,
  options: { admission: AdmissionLimits; idleMs: number | null },
  onEvent: (event: ProcessEvent) => void,
): Exchange {
  const admission = createAdmission(options.admission);
  const entries = new Map<number, Entry>();
  let load = nothing;
  let lastId = 0;

  const supervisor = createSupervisor(name, toCore, options.idleMs, {
    message: receive,
    gone(error) {
      load = nothing;
      for (const id of [...entries.keys()]) fail(id, error);
    },
    event: onEvent,
  });

  function fail(id: number, error: unknown): void {
    const entry = entries.get(id);
    entry?.leave();
    entry?.listener.failed(error);
  }

  function receive(message: ToParent): void {
    if (message.kind === 'failed') fail(message.id, toError(message.failure));
    if (message.kind === 'counted') {
      const entry = entries.get(message.id);
      entry?.leave();
      entry?.listener.counted?.(message.tokens);
    }
    if (message.kind !== 'batch') return;
    load = message.load;
    for (const event of message.events) {
      const entry = entries.get(event.id);
      if (event.kind === 'started') entry?.started();
      else if (event.kind === 'chunk') entry?.listener.chunk?.(event.chunk, event.soFar);
      else if (event.kind === 'usage') entry?.listener.usage?.(event.soFar);
      else {
        supervisor.healthy();
        entry?.leave();
        entry?.listener.ended?.();
      }
    }
  }

  function toError({ failure, message, code, param }: WireFailure): EngineError {
    if (failure === 'overloaded') return admission.overloaded(message);
    return new EngineError(failure, message, { code, param });
  }

  return {
    ask({ signal, caller }, toMessage, listener) {
      signal.throwIfAborted();
      supervisor.ensure();
      const id = ++lastId;
      const ticket = admission.enter(caller, (error) => giveUp(error));

      function leave(): void {
        ticket.left();
        signal.removeEventListener('abort', abort);
        entries.delete(id);
        if (entries.size === 0) supervisor.busy(false);
      }
      function giveUp(error?: unknown): void {
        if (!entries.has(id)) return;
        supervisor.send({ kind: 'cancel', id });
        leave();
        if (error !== undefined) listener.failed(error);
      }
      function abort(): void {
        giveUp(signal.reason);
      }

      entries.set(id, { listener, started: ticket.started, leave });
      signal.addEventListener('abort', abort);
      supervisor.busy(true);
      supervisor.send(toMessage(id));
      return () => giveUp();
    },
    async preload() {
      supervisor.ensure();
      await supervisor.ready();
      if (entries.size === 0) supervisor.busy(false);
    },
    status: () => ({
      loaded: supervisor.loaded,
      pid: supervisor.pid,
      requests: entries.size,
      queued: admission.waiting,
      ...load,
    }),
    async unload() {
      if (entries.size === 0) await supervisor.unload();
    },
    close: supervisor.close,
  };
}
