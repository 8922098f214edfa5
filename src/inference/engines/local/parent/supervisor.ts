// Keeps at most one child process alive for a model: starts it when it is needed, ends it when it is idle, and waits
// longer after each crash before the next start. A GPU that fails while the model is loaded is not tried again: the
// requests that wait are served on the CPU.

import { EngineError } from '#inference/engine.ts';
import type {
  ChildOptions,
  ModelInfo,
  ToChild,
  ToParent,
  WireFailure,
} from '#inference/engines/local/protocol.ts';
import { borrowNoGpu, type GpuLease } from './gpu-lease.ts';
import {
  createStandby,
  type ModelProcess,
  type Standby,
  startModelProcess,
} from './model-process.ts';

export interface SupervisorOptions {
  /** The model's name in messages. */
  name: string;
  /** Called at each start of the child. The supervisor adds the GPU. */
  toChildOptions: () => Omit<ChildOptions, 'gpu' | 'device'>;
  /** Called at each start of the child, unless a GPU has failed before. Never rejects. */
  borrowGpu: () => Promise<GpuLease>;
  /** The child is ended after this time without work. Null keeps it. */
  idleMs: number | null;
  /** When the child has ended, a process is started for the next load. Default false. */
  keepsStandby?: boolean;
  startProcess?: typeof startModelProcess;
}

export interface SupervisorEvents {
  message(message: ToParent): void;
  /** The child has exited, and its requests have failed with it. */
  gone(error: EngineError): void;
  event(event: ProcessEvent): void;
}

export type ProcessEvent =
  | { kind: 'starting'; pid: number | null }
  | ({ kind: 'ready'; pid: number | null } & ModelInfo)
  | { kind: 'gpu_failed'; reason: string }
  | { kind: 'exited'; reason: string; expected: boolean }
  | { kind: 'output'; line: string };

export interface Supervisor {
  /** Starts the child unless it runs. Throws EngineError during a back-off and after `close`. */
  ensure(): void;
  /** Resolves when the model is loaded. */
  ready(): Promise<void>;
  /** Holds the message until the model is loaded. */
  send(message: ToChild): void;
  /** Reports whether there is work. The idle timeout starts when there is none. */
  busy(now: boolean): void;
  /** Reports that a request was served, so that the next crash counts as the first one. */
  healthy(): void;
  readonly pid: number | null;
  readonly loaded: boolean;
  /** Ends the child as the idle timeout does. */
  unload(): Promise<void>;
  close(): Promise<void>;
}

const minBackOffMs = 500;
const maxBackOffMs = 30_000;

interface SupervisorState {
  readonly options: SupervisorOptions;
  readonly events: SupervisorEvents;
  readonly standby: Standby;
  child: ModelProcess | null;
  loading: PromiseWithResolvers<void>;
  loaded: boolean;
  /** Why the child could not load the model; null if it did not say. */
  unable: WireFailure | null;
  gpuFailed: boolean;
  /** Messages sent while the model is loaded. Bounded by the number of requests admitted. */
  held: ToChild[];
  crashes: number;
  /** Unix milliseconds before which no child is started. */
  notBefore: number;
  closed: boolean;
  idleTimer: NodeJS.Timeout | null;
  /** Children that were asked to exit and have not yet. */
  readonly ending: Set<Promise<void>>;
}

export function createSupervisor(options: SupervisorOptions, events: SupervisorEvents): Supervisor {
  const { name, idleMs, keepsStandby = false } = options;
  const state: SupervisorState = {
    options,
    events,
    standby: createStandby(options.startProcess ?? startModelProcess),
    child: null,
    loading: Promise.withResolvers<void>(),
    loaded: false,
    unable: null,
    gpuFailed: false,
    held: [],
    crashes: 0,
    notBefore: 0,
    closed: false,
    idleTimer: null,
    ending: new Set(),
  };
  const stopIdleTimer = () => {
    if (state.idleTimer !== null) clearTimeout(state.idleTimer);
    state.idleTimer = null;
  };
  const unload = async () => {
    await endChild(state, `${name} was unloaded.`);
    if (keepsStandby && !state.closed && state.child === null) state.standby.prepare();
  };
  return {
    get pid() {
      return state.child?.pid ?? null;
    },
    get loaded() {
      return state.loaded;
    },
    ensure: () => ensureChild(state),
    ready: () => state.loading.promise,
    send(message) {
      if (state.loaded) state.child?.send(message);
      else if (message.kind === 'cancel')
        state.held = state.held.filter((each) => !isAbout(each, message.id));
      else if (state.child !== null) state.held.push(message);
    },
    busy(now) {
      stopIdleTimer();
      if (now || idleMs === null || state.child === null) return;
      state.idleTimer = setTimeout(() => void unload(), idleMs).unref();
    },
    healthy() {
      state.crashes = 0;
    },
    unload,
    async close() {
      state.closed = true;
      stopIdleTimer();
      await endChild(state, `${name} is shutting down.`);
      await Promise.all([...state.ending, state.standby.close()]);
    },
  };
}

function ensureChild(state: SupervisorState): void {
  const { name } = state.options;
  if (state.closed) throw new EngineError('unavailable', `${name} has been shut down.`);
  if (state.child !== null) return;
  const waitMs = state.notBefore - Date.now();
  if (waitMs > 0)
    throw new EngineError('unavailable', `${name} failed and is not started again yet.`, {
      code: 'model_unavailable',
      retryAfterMs: waitMs,
    });
  state.loading = Promise.withResolvers<void>();
  // A rejection that nothing waits for must not end this process.
  state.loading.promise.catch(() => {});
  startChild(state);
}

function startChild(state: SupervisorState): void {
  const { events } = state;
  const { toChildOptions, borrowGpu } = state.options;
  state.unable = null;
  const options = toChildOptions();
  /** Null until the child may load its model. */
  let lease: GpuLease | null = null;
  let hasExited = false;
  /** The first line of output that names an error. The child has seen no request by then. */
  let complaint: string | null = null;
  const child: ModelProcess = state.standby.take({
    output(line) {
      if (!state.loaded && /error/i.test(line)) complaint ??= line;
      events.event({ kind: 'output', line });
    },
    message(message) {
      if (message.kind === 'ready' && message.gpu === false) lease?.release();
      if (child === state.child) receive(state, child, message);
    },
    exit(reason, expected) {
      const { unable } = state;
      hasExited = true;
      lease?.release();
      events.event({ kind: 'exited', reason: unable?.message ?? reason, expected });
      if (child !== state.child) return;
      // A refusal of our own, such as too little memory or a bad file, is not the GPU's fault.
      const refused = unable !== null && (unable.failure !== 'unavailable' || unable.code !== null);
      if (state.loaded || expected || refused || (lease?.gpu ?? false) === false)
        return lose(state, toExitError(state, reason), expected);
      state.gpuFailed = true;
      events.event({ kind: 'gpu_failed', reason: complaint ?? unable?.message ?? reason });
      startChild(state);
    },
  });
  state.child = child;
  events.event({ kind: 'starting', pid: child.pid });
  void (state.gpuFailed ? borrowNoGpu() : borrowGpu()).then((borrowed) => {
    lease = borrowed;
    const { gpu, device } = borrowed;
    if (hasExited) borrowed.release();
    else child.send({ kind: 'load', options: { ...options, gpu, device } });
  });
}

function receive(state: SupervisorState, child: ModelProcess, message: ToParent): void {
  if (message.kind === 'unable') state.unable = message.failure;
  if (message.kind === 'ready') {
    state.loaded = true;
    state.events.event({ pid: child.pid, ...message });
    state.loading.resolve();
    for (const each of state.held) child.send(each);
    state.held = [];
  }
  state.events.message(message);
}

function toExitError({ options, unable }: SupervisorState, reason: string): EngineError {
  const { name } = options;
  if (unable === null)
    return new EngineError('unavailable', `The process that runs ${name} ${reason}.`);
  return new EngineError(unable.failure, `${name} could not be loaded: ${unable.message}`, {
    code: 'model_unavailable',
    retryAfterMs: minBackOffMs,
  });
}

/** Forgets the child and fails everything that waits for it. */
function lose(state: SupervisorState, error: EngineError, expected: boolean): void {
  state.child = null;
  state.loaded = false;
  state.held = [];
  if (!expected) {
    // One request may have caused the first crash, and the next request must not wait for that. A model that can't be
    // loaded stays so for a while.
    const step = state.unable === null ? state.crashes - 1 : state.crashes;
    const backOffMs = step < 0 ? 0 : minBackOffMs * 2 ** step;
    state.notBefore = Date.now() + Math.min(maxBackOffMs, backOffMs);
    state.crashes++;
  }
  state.loading.reject(error);
  state.events.gone(error);
}

async function endChild(state: SupervisorState, message: string): Promise<void> {
  const { child, ending } = state;
  if (child === null) return;
  lose(state, new EngineError('unavailable', message), true);
  const end = child.close();
  ending.add(end);
  await end;
  ending.delete(end);
}

function isAbout(message: ToChild, id: number): boolean {
  return 'id' in message && message.id === id;
}
