// Gives each request a lease on a backend of its model: at once if one is free, otherwise in the order of a bounded
// fair queue. Only the router counts outstanding requests.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { Backend, BackendList, Hold } from '#inference/backends/backend.ts';
import { EngineError, type Task, toOverloaded } from '#inference/engine.ts';
import {
  BoundedFairQueue,
  type QueueItem,
  type QueueLimits,
  QueueRefusal,
  type RefusalReason,
} from '#lib/async/bounded-fair-queue.ts';
import { createRetryAfterEstimator, type RetryAfterEstimator } from '#lib/async/retry-after.ts';
import type { Clock } from '#lib/clock.ts';
import { type Choice, chooseBackend, hasFreeBackend, tryBackend } from './choose-backend.ts';

/** How a request waits in the queue. */
interface QueuedRequest {
  readonly caller: string;
  /** Lower goes first. */
  readonly priority: number;
  readonly signal: Cancellation;
}

export interface RoutedRequest extends QueuedRequest {
  readonly task: Task;
  /** Backends that were tried or can't take the request. */
  readonly exclude: Pick<ReadonlySet<Backend>, 'has'>;
}

/** One of a backend's concurrent requests, held until it is released. */
export interface Lease {
  readonly backend: Backend;
  /** True for the one request that finds out whether an ejected backend has recovered. */
  readonly isProbe: boolean;
  /** The caller whose request it is. */
  readonly caller: string;
}

export interface RouterOptions extends QueueLimits {
  onRefused?: (model: string, reason: RefusalReason) => void;
}

/** The backend for a request as it is now. */
type Choose = () => Choice;

interface WaitingRequest extends QueueItem {
  readonly choose: Choose;
  grant(lease: Lease): void;
  fail(error: unknown): void;
}

/** The requests that wait for one model. It exists only while there are any. */
interface ModelQueue {
  readonly model: string;
  readonly requests: BoundedFairQueue<WaitingRequest>;
  readonly retryAfter: RetryAfterEstimator;
}

/** Health changes with time, and backends come and go: waiting requests are checked this often. */
const recheckMs = 100;

/** A probe may find that a backend has recovered before its ejection ends. */
const maxRetryAfterMs = 10_000;
const minRetryAfterMs = 1_000;
/** The same for a deployment that starts: a download may become faster. */
const maxStartMs = 600_000;

export class Router {
  readonly #list: BackendList;
  readonly #clock: Clock;
  readonly #limits: { maxLength: number; maxWaitMs: number };
  readonly #onRefused: (model: string, reason: RefusalReason) => void;
  readonly #queues = new Map<string, ModelQueue>();
  readonly #probes = new Map<Backend, Lease>();
  readonly #isProbed = (backend: Backend) => this.#probes.has(backend);
  #timer: NodeJS.Timeout | null = null;
  /** Called when a request begins to wait. */
  onWaiting: (model: string) => void = () => {};

  constructor(list: BackendList, clock: Clock, options: RouterOptions) {
    const { maxLength, maxWaitMs, onRefused = () => {} } = options;
    this.#list = list;
    this.#clock = clock;
    this.#limits = { maxLength, maxWaitMs };
    this.#onRefused = onRefused;
  }

  /**
   * Returns null if the request has to wait. Throws EngineError `unavailable` with the code `model_unavailable` if
   * no backend can take the request.
   */
  tryAcquire(model: string, request: RoutedRequest): Lease | null {
    return this.#tryAcquire(model, this.#chooseFor(model, request), request.caller);
  }

  #tryAcquire(model: string, choose: Choose, caller: string): Lease | null {
    const choice = choose();
    if (choice === 'none') throw this.#unavailable(model);
    // A new request must not overtake those that wait.
    return choice === 'busy' || this.#queues.has(model) ? null : this.#lease(choice, caller);
  }

  /**
   * Waits for a backend. Throws EngineError `overloaded` at once if the queue is full. Rejects with `overloaded` after
   * the maximum wait, with `unavailable` as `tryAcquire` throws it, and with the signal's reason when it aborts.
   */
  waitForLease(model: string, request: RoutedRequest): Promise<Lease> {
    return this.#wait(model, request, this.#chooseFor(model, request));
  }

  /** Takes a place of this backend, or waits for one in the queue of its model. Fails as `waitForLease`. */
  async leaseOf(backend: Backend, request: QueuedRequest): Promise<Lease> {
    const { model } = backend;
    // It may be removed meanwhile.
    const choose = () =>
      this.#list.forModel(model).includes(backend) ? tryBackend(backend, this.#isProbed) : 'none';
    return this.#tryAcquire(model, choose, request.caller) ?? this.#wait(model, request, choose);
  }

  #wait(
    model: string,
    { caller, priority, signal }: QueuedRequest,
    choose: Choose,
  ): Promise<Lease> {
    signal.throwIfAborted();
    const queue = this.#queues.get(model) ?? this.#openQueue(model);
    const { promise, resolve, reject } = Promise.withResolvers<Lease>();
    const item: WaitingRequest = {
      choose,
      caller,
      priority,
      grant: resolve,
      fail: reject,
      refuse: (refusal) => reject(this.#refuse(model, refusal)),
    };
    const abort = () => {
      if (!queue.requests.leave(item)) return;
      reject(signal.reason);
      this.#removeIfEmpty(queue);
    };
    this.#enter(queue, item);
    signal.addEventListener('abort', abort);
    this.#timer ??= setInterval(() => this.recheck(), recheckMs).unref();
    this.#grantLeases(queue);
    this.onWaiting(model);
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  /** The backend of a probe has recovered: other requests need not wait for the end of a long response. */
  proven(lease: Lease): void {
    this.#endProbe(lease);
    const queue = this.#queues.get(lease.backend.model);
    if (queue !== undefined) this.#grantLeases(queue);
  }

  /** Must be called exactly once for each lease. */
  release(lease: Lease): void {
    const { backend } = lease;
    backend.outstanding--;
    this.#endProbe(lease);
    const queue = this.#queues.get(backend.model);
    if (queue === undefined) return;
    queue.retryAfter.departed();
    this.#grantLeases(queue);
  }

  /** True if a request for the model would be sent at once, and none waits. */
  hasSpare(model: string): boolean {
    return !this.#queues.has(model) && hasFreeBackend(this.#list.forModel(model), this.#isProbed);
  }

  /** Number of requests that wait for a model. */
  queued(model: string): number {
    return this.#queues.get(model)?.requests.size ?? 0;
  }

  /** How requests wait for the model's deployment; null if there is none, or another backend will take them. */
  findHold(model: string): Hold | null {
    const all = this.#list.forModel(model);
    const holds = all.flatMap(({ hold }) => hold ?? []);
    const open = holds.find(({ obstacle }) => obstacle === null);
    const isTaken = all
      .filter(({ hold, draining }) => hold === null && !draining)
      .some(({ health }) => open === undefined || health.state() !== 'ejected');
    return isTaken ? null : (open ?? holds[0] ?? null);
  }

  configure({ maxLength, maxWaitMs }: QueueLimits): void {
    Object.assign(this.#limits, { maxLength, maxWaitMs });
  }

  /** Checks which waiting requests may go, as after a change of the backends. Runs by itself every 100 ms. */
  recheck(): void {
    for (const queue of [...this.#queues.values()]) {
      queue.requests.expire();
      this.#refuseHopeless(queue);
      this.#grantLeases(queue);
    }
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const { model, requests } of this.#queues.values()) {
      for (const item of requests.clear()) item.fail(this.#unavailable(model));
    }
    this.#queues.clear();
  }

  #chooseFor(model: string, { task, exclude }: RoutedRequest): Choose {
    const constraints = { task, exclude, isProbed: this.#isProbed };
    return () => chooseBackend(this.#list.forModel(model), constraints);
  }

  #lease(backend: Backend, caller: string): Lease {
    const isProbe = backend.health.state() === 'probation';
    const lease = { backend, isProbe, caller };
    if (isProbe) this.#probes.set(backend, lease);
    backend.outstanding++;
    backend.taken++;
    return lease;
  }

  /** The backend may be on probation again by now, with another request as its probe. */
  #endProbe(lease: Lease): void {
    const { backend, isProbe } = lease;
    if (isProbe && this.#probes.get(backend) === lease) this.#probes.delete(backend);
  }

  #enter(queue: ModelQueue, item: WaitingRequest): void {
    try {
      queue.requests.enter(item);
    } catch (error) {
      throw error instanceof QueueRefusal ? this.#refuse(queue.model, error) : error;
    } finally {
      this.#removeIfEmpty(queue);
    }
  }

  #openQueue(model: string): ModelQueue {
    const retryAfter = createRetryAfterEstimator(this.#clock);
    retryAfter.start();
    const limits = this.#limitsOf(model);
    const requests = new BoundedFairQueue<WaitingRequest>(limits, this.#clock, retryAfter);
    const queue = { model, requests, retryAfter };
    this.#queues.set(model, queue);
    return queue;
  }

  /** A deployment says itself how many requests may wait for it. */
  #limitsOf(model: string): QueueLimits {
    const find = () => this.findHold(model) ?? this.#limits;
    return {
      get maxLength() {
        return find().maxLength;
      },
      get maxWaitMs() {
        return find().maxWaitMs;
      },
    };
  }

  #removeIfEmpty({ model, requests }: ModelQueue): void {
    if (requests.size > 0) return;
    this.#queues.delete(model);
    if (this.#queues.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #grantLeases(queue: ModelQueue): void {
    const { model, requests } = queue;
    while (requests.size > 0 && hasFreeBackend(this.#list.forModel(model), this.#isProbed)) {
      let backend: Backend | null = null;
      const item = requests.take(({ choose }) => {
        const choice = choose();
        backend = typeof choice === 'string' ? null : choice;
        return backend !== null;
      });
      if (item === undefined || backend === null) break;
      item.grant(this.#lease(backend, item.caller));
    }
    this.#removeIfEmpty(queue);
  }

  /** A busy backend may have failed or started to drain, so that no backend is left for a request. */
  #refuseHopeless({ model, requests }: ModelQueue): void {
    for (;;) {
      const item = requests.take(({ choose }) => choose() === 'none');
      if (item === undefined) return;
      item.fail(this.#unavailable(model));
    }
  }

  #refuse(model: string, refusal: QueueRefusal): EngineError {
    this.#onRefused(model, refusal.reason);
    const readyBy = this.findHold(model)?.readyBy() ?? null;
    if (readyBy === null) return toOverloaded(refusal);
    const leftMs = Math.ceil(readyBy - this.#clock.now());
    const retryAfterMs = Math.min(maxStartMs, Math.max(minRetryAfterMs, leftMs));
    return toOverloaded({ message: refusal.message, retryAfterMs });
  }

  #unavailable(model: string): EngineError {
    const { obstacle = null, isPassing = false } = this.findHold(model) ?? {};
    const list = this.#list.forModel(model);
    const retryAfterMs = soonestRetryMs(list);
    if (obstacle === null)
      return new EngineError('unavailable', 'No backend can take the request.', {
        code: list.length === 0 ? 'no_backend' : 'model_unavailable',
        retryAfterMs,
      });
    const code = 'deployment_unavailable';
    // A retry would not help before an owner does something.
    return new EngineError('unavailable', obstacle, {
      code,
      ...(isPassing && { retryAfterMs }),
    });
  }
}

/** Milliseconds until the first of the backends may be tried again. */
function soonestRetryMs(backends: readonly Backend[]): number {
  const waits = backends
    .filter(({ draining }) => !draining)
    .map((one) => one.health.retryAfterMs());
  return Math.ceil(Math.max(minRetryAfterMs, Math.min(maxRetryAfterMs, ...waits)));
}
