// Gives each request a place at a backend of its model: at once where one is free, in turn where not. The
// only one who counts what is outstanding.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { Backend, BackendList } from '#inference/backends/backend.ts';
import { EngineError, type Task } from '#inference/engine.ts';
import type { Clock } from '#lib/clock.ts';
import { chooseBackend, hasPlace } from './choice.ts';
import {
  createWaitingLine,
  type QueueLimits,
  type RefusalReason,
  type Waiter,
  type WaitingLine,
} from './waiting-requests.ts';

export interface Ask {
  readonly task: Task;
  readonly caller: string;
  /** Lower goes first. */
  readonly priority: number;
  readonly signal: Cancellation;
  /** Backends that were tried or can't do it. */
  readonly exclude: ReadonlySet<Backend>;
}

/** A place at a backend, held until it is released. */
export interface Lease {
  readonly backend: Backend;
  /** The one request that finds out whether a backend is well again. */
  readonly isProbe: boolean;
}

export interface Router {
  /**
   * Throws EngineError `overloaded` when the queue is full or the wait too long, `unavailable` with the code
   * `model_unavailable` when no backend could take it, and the signal's reason when that aborts.
   */
  acquire(model: string, ask: Ask): Lease | Promise<Lease>;
  /** The backend of a probe is well: others need not wait for the end of a long answer. */
  proven(lease: Lease): void;
  /** Exactly once for each lease. */
  release(lease: Lease): void;
  /** Requests that wait for a model. */
  queued(model: string): number;
  /** Other bounds, from now on. */
  configure(limits: QueueLimits): void;
  /** Looks again who may go, as after a change of the backends; by itself a few times a second. */
  recheck(): void;
  close(): void;
}

export interface RouterOptions extends QueueLimits {
  onRefused?: (model: string, reason: RefusalReason) => void;
}

interface Waiting extends Waiter {
  readonly ask: Ask;
  grant(lease: Lease): void;
}

/** Health changes with time and backends come and go; those who wait look so often. */
const recheckMs = 100;

/** A probe may find that one is well before its time is over. */
const longestRetryMs = 10_000;

/** When the first of them may be tried again. */
function soonest(backends: readonly Backend[]): number {
  const waits = backends
    .filter(({ draining }) => !draining)
    .map((one) => one.health.retryAfterMs());
  return Math.ceil(Math.max(1000, Math.min(longestRetryMs, ...waits)));
}

export function createRouter(list: BackendList, clock: Clock, options: RouterOptions): Router {
  /** Only of models somebody waits for. */
  const lines = new Map<string, WaitingLine<Waiting>>();
  const probes = new Map<Backend, Lease>();
  const isProbed = (backend: Backend) => probes.has(backend);
  const limits: QueueLimits = { length: options.length, waitMs: options.waitMs };
  let timer: NodeJS.Timeout | null = null;

  const choose = (model: string, { task, exclude }: Ask) =>
    chooseBackend(list.forModel(model), { task, exclude, isProbed });

  function lease(backend: Backend): Lease {
    const isProbe = backend.health.state() === 'probation';
    const lease = { backend, isProbe };
    if (isProbe) probes.set(backend, lease);
    backend.outstanding++;
    return lease;
  }

  /** The same backend may be on probation again by now, with another request at it. */
  function endProbe(lease: Lease): void {
    if (lease.isProbe && probes.get(lease.backend) === lease) probes.delete(lease.backend);
  }

  function unavailable(model: string): EngineError {
    return new EngineError('unavailable', 'No backend can take the request.', {
      code: 'model_unavailable',
      retryAfterMs: soonest(list.forModel(model)),
    });
  }

  function wait(model: string, ask: Ask): Promise<Lease> {
    ask.signal.throwIfAborted();
    const line = lines.get(model) ?? openLine(model);
    const { promise, resolve, reject } = Promise.withResolvers<Lease>();
    const waiter: Waiting = {
      ask,
      caller: ask.caller,
      priority: ask.priority,
      deadlineMs: 0,
      grant: (lease) => settle(() => resolve(lease)),
      refuse: (error) => settle(() => reject(error)),
    };
    function settle(how: () => void): void {
      ask.signal.removeEventListener('abort', abort);
      how();
    }
    function abort(): void {
      if (line.leave(waiter)) reject(ask.signal.reason);
      tidy(model, line);
    }
    try {
      line.enter(waiter);
    } finally {
      tidy(model, line);
    }
    ask.signal.addEventListener('abort', abort);
    timer ??= setInterval(recheck, recheckMs).unref();
    serve(model, line);
    return promise;
  }

  function openLine(model: string): WaitingLine<Waiting> {
    const line = createWaitingLine<Waiting>(limits, clock, (reason) =>
      options.onRefused?.(model, reason),
    );
    lines.set(model, line);
    return line;
  }

  function tidy(model: string, line: WaitingLine<Waiting>): void {
    if (line.size > 0) return;
    lines.delete(model);
    if (lines.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  /** Lets those go for whom there is a place. */
  function serve(model: string, line: WaitingLine<Waiting>): void {
    const backends = list.forModel(model);
    while (line.size > 0 && hasPlace(backends, isProbed)) {
      let place: Backend | null = null;
      const waiter = line.take(({ ask: { task, exclude } }) => {
        const choice = chooseBackend(backends, { task, exclude, isProbed });
        place = typeof choice === 'string' ? null : choice;
        return place !== null;
      });
      if (waiter === undefined || place === null) break;
      waiter.grant(lease(place));
    }
    tidy(model, line);
  }

  /** Nobody waits for what will not come: a busy backend may have failed or begun to drain meanwhile. */
  function refuseHopeless(model: string, line: WaitingLine<Waiting>): void {
    for (;;) {
      const waiter = line.take(({ ask }) => choose(model, ask) === 'none');
      if (waiter === undefined) return;
      waiter.refuse(unavailable(model));
    }
  }

  function recheck(): void {
    for (const [model, line] of [...lines]) {
      line.expire();
      refuseHopeless(model, line);
      serve(model, line);
    }
  }

  return {
    recheck,
    configure: (next) => Object.assign(limits, next),
    acquire(model, ask) {
      const choice = choose(model, ask);
      if (choice === 'none') throw unavailable(model);
      // Who comes now does not overtake those who wait.
      if (choice === 'busy' || lines.has(model)) return wait(model, ask);
      return lease(choice);
    },
    proven(lease) {
      endProbe(lease);
      const { model } = lease.backend;
      const line = lines.get(model);
      if (line !== undefined) serve(model, line);
    },
    release(lease) {
      const { backend } = lease;
      backend.outstanding--;
      endProbe(lease);
      const line = lines.get(backend.model);
      if (line === undefined) return;
      line.moved();
      serve(backend.model, line);
    },
    queued: (model) => lines.get(model)?.size ?? 0,
    close() {
      if (timer !== null) clearInterval(timer);
      for (const [model, line] of lines) line.clear(unavailable(model));
      lines.clear();
    },
  };
}
