// Keeps at most one child alive for a model: starts it when it is needed, lets it go when it is idle, and
// waits longer after each crash before the next start. A GPU that fails while the model is loaded is not
// tried again: what was asked meanwhile is answered on the CPU.

import { EngineError } from '#inference/engine.ts';
import type { CoreOptions } from '#inference/engines/local/child/runtime.ts';
import type { Loaded, ToChild, ToParent, WireFailure } from '#inference/engines/local/protocol.ts';
import { type ModelProcess, startModelProcess } from './model-process.ts';

export interface SupervisorEvents {
  message(message: ToParent): void;
  /** The child is gone and everything it was doing with it. */
  gone(error: EngineError): void;
  event(event: ProcessEvent): void;
}

export type ProcessEvent =
  | { kind: 'starting'; pid: number | null }
  | ({ kind: 'ready'; pid: number | null } & Loaded)
  | { kind: 'gpu_failed'; reason: string }
  | { kind: 'exited'; reason: string; expected: boolean }
  | { kind: 'output'; line: string };

export interface Supervisor {
  /** Starts the child unless it runs. Throws EngineError while it may not. */
  ensure(): void;
  /** Resolves when the model is loaded. */
  ready(): Promise<void>;
  /** Waits with it until the model is loaded. */
  send(message: ToChild): void;
  /** Work is going on, or none is: the idle clock starts with the latter. */
  busy(now: boolean): void;
  /** It has answered, so the next crash is a first one. */
  healthy(): void;
  readonly pid: number | null;
  readonly loaded: boolean;
  /** Ends the child as idleness would. */
  unload(): Promise<void>;
  close(): Promise<void>;
}

const firstBackOffMs = 500;
const longestBackOffMs = 30_000;

export function createSupervisor(
  name: string,
  /** Asked at each start. */
  toOptions: () => CoreOptions,
  idleMs: number | null,
  events: SupervisorEvents,
  startProcess = startModelProcess,
): Supervisor {
  let child: ModelProcess | null = null;
  let loading = Promise.withResolvers<void>();
  let loaded = false;
  let unable: WireFailure | null = null;
  let withoutGpu = false;
  /** What was sent while the model was loading; as much as is admitted. */
  let held: ToChild[] = [];
  let crashes = 0;
  let notBefore = 0;
  let closed = false;
  let idle: NodeJS.Timeout | null = null;
  /** Children that were asked to end and have not yet. */
  const ending = new Set<Promise<void>>();

  function start(): void {
    loading = Promise.withResolvers<void>();
    // Nobody may be waiting for it.
    loading.promise.catch(() => {});
    load();
  }

  function load(): void {
    unable = null;
    const options = { ...toOptions(), ...(withoutGpu && { gpu: false as const }) };
    /** The first line that names an error; no request has been seen by then. */
    let complaint: string | null = null;
    const started: ModelProcess = startProcess(options, {
      output(line) {
        if (!loaded && /error/i.test(line)) complaint ??= line;
        events.event({ kind: 'output', line });
      },
      message(message) {
        if (started !== child) return;
        if (message.kind === 'unable') unable = message.failure;
        if (message.kind === 'ready') {
          loaded = true;
          events.event({ pid: started.pid, ...message });
          loading.resolve();
          for (const each of held) started.send(each);
          held = [];
        }
        events.message(message);
      },
      exit(reason, expected) {
        events.event({ kind: 'exited', reason: unable?.message ?? reason, expected });
        if (started !== child) return;
        // What we refuse ourselves, such as too much memory, is not the GPU's fault.
        const refused = unable !== null && unable.failure !== 'unavailable';
        if (loaded || expected || refused || options.gpu === false)
          return lost(toError(reason), expected);
        withoutGpu = true;
        events.event({ kind: 'gpu_failed', reason: complaint ?? unable?.message ?? reason });
        load();
      },
    });
    child = started;
    events.event({ kind: 'starting', pid: started.pid });
  }

  function toError(reason: string): EngineError {
    if (unable === null)
      return new EngineError('unavailable', `The process that runs ${name} ${reason}.`);
    return new EngineError(unable.failure, `${name} could not be loaded: ${unable.message}`, {
      code: 'model_unavailable',
      retryAfterMs: firstBackOffMs,
    });
  }

  function lost(error: EngineError, expected: boolean): void {
    child = null;
    loaded = false;
    held = [];
    if (!expected) {
      // A first crash may be the fault of one request, and the next request need not pay for it. A model
      // that can't be loaded stays so for a while.
      const step = unable === null ? crashes - 1 : crashes;
      const backOff = step < 0 ? 0 : firstBackOffMs * 2 ** step;
      notBefore = Date.now() + Math.min(longestBackOffMs, backOff);
      crashes++;
    }
    loading.reject(error);
    events.gone(error);
  }

  async function letGo(message: string): Promise<void> {
    const leaving = child;
    if (leaving === null) return;
    lost(new EngineError('unavailable', message), true);
    const end = leaving.close();
    ending.add(end);
    await end;
    ending.delete(end);
  }

  return {
    get pid() {
      return child?.pid ?? null;
    },
    get loaded() {
      return loaded;
    },
    ensure() {
      if (closed) throw new EngineError('unavailable', `${name} has been shut down.`);
      if (child !== null) return;
      const wait = notBefore - Date.now();
      if (wait > 0)
        throw new EngineError('unavailable', `${name} failed and is being given a pause.`, {
          code: 'model_unavailable',
          retryAfterMs: wait,
        });
      start();
    },
    ready: () => loading.promise,
    send(message) {
      if (loaded) child?.send(message);
      else if (message.kind === 'cancel') held = held.filter((each) => !isAbout(each, message.id));
      else if (child !== null) held.push(message);
    },
    busy(now) {
      if (idle !== null) clearTimeout(idle);
      idle = null;
      if (now || idleMs === null || child === null) return;
      idle = setTimeout(() => void letGo(`${name} was let go.`), idleMs).unref();
    },
    healthy() {
      crashes = 0;
    },
    unload: () => letGo(`${name} was let go.`),
    async close() {
      closed = true;
      if (idle !== null) clearTimeout(idle);
      await letGo(`${name} is shutting down.`);
      await Promise.all(ending);
    },
  };
}

function isAbout(message: ToChild, id: number): boolean {
  return 'id' in message && message.id === id;
}
