// The requests sent to the child process: they are admitted, sent and listened to, and cancelled when their signal
// aborts, their wait times out or the child exits.

import type { Cancellation } from '#http/client-disconnect.ts';
import { EngineError, toEngineError, toOverloaded } from '#inference/engine.ts';
import type {
  Answer,
  ChildLoad,
  ToChild,
  ToParent,
  WireFailure,
} from '#inference/engines/local/protocol.ts';
import type { EngineChunk, Usage } from '#inference/wire/response.ts';
import {
  BoundedFairQueue,
  type QueueItem,
  type QueueLimits,
} from '#lib/async/bounded-fair-queue.ts';
import { createRetryAfterEstimator, type RetryAfterEstimator } from '#lib/async/retry-after.ts';
import { systemClock } from '#lib/clock.ts';
import { type ProcessEvent, Supervisor, type SupervisorOptions } from './supervisor.ts';

/** Receives what the child sends for a request. Nothing is called after `ended`, `answer` or `failed`. */
export interface RequestListener {
  chunk?(chunk: EngineChunk, soFar: Usage): void;
  usage?(soFar: Usage): void;
  ended?(): void;
  vector?(index: number, vector: Float32Array, soFar: Usage): void;
  answer?(answer: Answer): void;
  failed(error: unknown): void;
}

/** The origin of a request: the caller's id for fairness, and the signal that cancels the request. */
export interface RequestSource {
  signal: Cancellation;
  caller: string;
}

export interface ChildRequests {
  /**
   * Sends the message made for a new id. Returns a function that cancels the request. Throws EngineError if it can't
   * be sent, and the signal's reason if that is already aborted.
   */
  send(
    source: RequestSource,
    toMessage: (id: number) => ToChild,
    listener: RequestListener,
  ): () => void;
  preload(): Promise<void>;
  status(): ChildRequestsStatus;
  /** Ends the child unless it has requests. */
  unload(): Promise<void>;
  close(): Promise<void>;
}

export interface ChildRequestsStatus extends ChildLoad {
  loaded: boolean;
  pid: number | null;
  requests: number;
  queued: number;
}

export interface ChildRequestsOptions extends SupervisorOptions {
  /** Bounds of the requests that wait for a sequence, read at each use. */
  queue: QueueLimits;
  /** Sequences of the child. A request that finds a free one does not wait. */
  sequences: number;
  onEvent: (event: ProcessEvent) => void;
}

interface OpenRequest {
  readonly listener: RequestListener;
  /** Ends the wait for a sequence. */
  started(): void;
  leave(): void;
}

interface RequestsState {
  readonly supervisor: Supervisor;
  /** Requests that the child has not started. The child chooses which one is next. */
  readonly queue: BoundedFairQueue<QueueItem>;
  readonly limits: QueueLimits;
  readonly retryAfter: RetryAfterEstimator;
  readonly open: Map<number, OpenRequest>;
  load: ChildLoad;
  lastId: number;
}

const noLoad: ChildLoad = { running: 0, waiting: 0 };

export function createChildRequests(options: ChildRequestsOptions): ChildRequests {
  const supervisor = new Supervisor(options, {
    message: (message) => receive(state, message),
    gone(error) {
      state.load = noLoad;
      for (const id of [...state.open.keys()]) fail(state, id, error);
    },
    event: options.onEvent,
  });
  const retryAfter = createRetryAfterEstimator(systemClock);
  // Requests stay in the queue until the child starts them, also those that find a free sequence.
  const limits: QueueLimits = {
    get maxLength() {
      return options.queue.maxLength + Math.max(0, options.sequences - state.load.running);
    },
    get maxWaitMs() {
      return options.queue.maxWaitMs;
    },
  };
  const state: RequestsState = {
    supervisor,
    queue: new BoundedFairQueue(limits, systemClock, retryAfter),
    limits,
    retryAfter,
    open: new Map(),
    load: noLoad,
    lastId: 0,
  };
  return {
    send: (source, toMessage, listener) => send(state, source, toMessage, listener),
    async preload() {
      supervisor.ensure();
      await supervisor.ready();
      if (state.open.size === 0) supervisor.busy(false);
    },
    status: () => ({
      loaded: supervisor.loaded,
      pid: supervisor.pid,
      requests: state.open.size,
      queued: state.queue.size,
      ...state.load,
    }),
    async unload() {
      if (state.open.size === 0) await supervisor.unload();
    },
    close: () => supervisor.close(),
  };
}

function send(
  state: RequestsState,
  { signal, caller }: RequestSource,
  toMessage: (id: number) => ToChild,
  listener: RequestListener,
): () => void {
  const { supervisor, open } = state;
  signal.throwIfAborted();
  supervisor.ensure();
  const id = ++state.lastId;
  const refuse: QueueItem['refuse'] = (refusal) => cancel(toOverloaded(refusal));
  const place = enterQueue(state, { caller, priority: 0, refuse });

  function leave(): void {
    place.left();
    signal.removeEventListener('abort', abort);
    open.delete(id);
    if (open.size === 0) supervisor.busy(false);
  }
  function cancel(error?: unknown): void {
    if (!open.has(id)) return;
    supervisor.send({ kind: 'cancel', id });
    leave();
    if (error !== undefined) listener.failed(error);
  }
  function abort(): void {
    cancel(signal.reason);
  }

  open.set(id, { listener, started: place.started, leave });
  signal.addEventListener('abort', abort);
  supervisor.busy(true);
  supervisor.send(toMessage(id));
  return () => cancel();
}

/** Throws EngineError `overloaded` if the queue is full. */
function enterQueue({ queue, retryAfter, open, limits }: RequestsState, item: QueueItem) {
  if (open.size === 0) retryAfter.start();
  try {
    queue.enter(item);
  } catch (error) {
    throw toEngineError(error);
  }
  const deadline = setTimeout(() => queue.refuseLate(item), limits.maxWaitMs).unref();
  let isRunning = false;
  const leaveQueue = () => {
    clearTimeout(deadline);
    queue.leave(item);
  };
  return {
    started() {
      isRunning = true;
      leaveQueue();
    },
    left() {
      if (isRunning) retryAfter.departed();
      leaveQueue();
    },
  };
}

function receive(state: RequestsState, message: ToParent): void {
  if (message.kind === 'failed') fail(state, message.id, toError(state, message.failure));
  if (message.kind === 'answer') {
    const request = state.open.get(message.id);
    request?.leave();
    request?.listener.answer?.(message.answer);
  }
  if (message.kind !== 'batch') return;
  state.load = message.load;
  for (const event of message.events) {
    const request = state.open.get(event.id);
    if (event.kind === 'started') request?.started();
    else if (event.kind === 'chunk') request?.listener.chunk?.(event.chunk, event.soFar);
    else if (event.kind === 'vector')
      request?.listener.vector?.(event.index, event.vector, event.soFar);
    else if (event.kind === 'usage') request?.listener.usage?.(event.soFar);
    else {
      state.supervisor.healthy();
      request?.leave();
      request?.listener.ended?.();
    }
  }
}

function fail(state: RequestsState, id: number, error: unknown): void {
  const request = state.open.get(id);
  request?.leave();
  request?.listener.failed(error);
}

function toError(
  state: RequestsState,
  { failure, message, code, param }: WireFailure,
): EngineError {
  if (failure !== 'overloaded') return new EngineError(failure, message, { code, param });
  const retryAfterMs = state.retryAfter.retryAfterMs(state.queue.size);
  return new EngineError(failure, message, { retryAfterMs });
}
