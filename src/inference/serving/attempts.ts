// Sends a planned request to backends until one of them responds: choose, send and, after a failure before the
// first byte, choose another. Streams that break later are resumed in resumable-stream.ts.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Cancellation, toSignal } from '#http/client-disconnect.ts';
import type { Backend, BackendList, Observation } from '#inference/backends/backend.ts';
import {
  type Call,
  EngineError,
  isCutOff,
  isRetryable,
  namesTokens,
  type Task,
} from '#inference/engine.ts';
import type { Work } from '#inference/routing/pace.ts';
import type { Lease, RoutedRequest, Router } from '#inference/routing/router.ts';
import type { EngineResponse, Usage } from '#inference/wire/response.ts';
import type { Plan } from './plan.ts';

/** Which backends a request was sent to and for how long, written as it happens. */
export interface AttemptLog {
  /** The backend that responds, or the last one that was tried; null before the first. */
  backend: Backend | null;
  /** Time spent waiting for a free backend. */
  queuedMs: number;
  /** Time spent waiting for a deployment to start; null if it had a replica. */
  coldStartMs: number | null;
  /** Time until the first byte, summed over all backends that were tried. */
  engineMs: number;
}

export const newAttemptLog = (): AttemptLog => ({
  backend: null,
  queuedMs: 0,
  coldStartMs: null,
  engineMs: 0,
});

export interface AttemptParts {
  readonly backends: BackendList;
  readonly router: Router;
  readonly events: AttemptEvents;
}

export interface AttemptEvents {
  /** The backend failed or was overloaded, before its first byte or later. */
  failed(backend: Backend, error: EngineError): void;
  /** A broken stream was resumed by this backend. */
  continued(backend: Backend): void;
}

/** What is sent to a backend, and to the next one if that fails. */
export interface BackendRequest {
  task: Task;
  readonly call: Call;
  readonly log: AttemptLog;
  /** Backends that can't take the request or have failed it. */
  exclude: ReadonlySet<Backend>;
}

export interface Attempt<Result> {
  readonly lease: Lease;
  readonly result: Result;
  /** When the request was sent, on the clock of `performance.now`. */
  readonly startMs: number;
}

type SendTo<Result> = (backend: Backend, request: BackendRequest) => Promise<Result>;

/** A failure that counts against its backend only if another backend succeeds. */
interface SuspectedFailure {
  readonly backend: Backend;
  readonly error: EngineError;
}

/** Maximum backends tried for one response. */
const maxAttempts = 3;
/** No further backend is tried once this much time has passed. */
const maxRetryMs = 120_000;
/** The first pause before the only backend of a model is tried again. It doubles, and varies by a half. */
const firstPauseMs = 100;
/** A backend that asks for a longer pause is not tried again: the client is told instead. */
const maxPauseMs = 3_000;
/** Maximum connections one request may break: it may crash every backend it is sent to. */
const maxBroken = 2;

/** Returns a whole response. Throws EngineError, or the signal's reason when it aborts. */
export async function respond(
  parts: AttemptParts,
  { served, task, unfit }: Plan,
  call: Call,
  log: AttemptLog,
): Promise<EngineResponse> {
  const request = { task, call, log, exclude: unfit };
  const { lease, result, startMs } = await tryBackends(parts, served.id, request, sendWhole);
  lease.backend.health.succeeded();
  const work = toWork(performance.now() - startMs, result.usage);
  conclude(parts, lease, null, { firstTokenMs: null, work });
  return result;
}

const sendWhole = ({ engine }: Backend, { task, call }: BackendRequest) =>
  engine.respond(task, call);

/**
 * Resolves with the first backend for which `send` succeeds. The caller must conclude its lease. Throws
 * EngineError, or the signal's reason when it aborts.
 */
export async function tryBackends<Result>(
  parts: AttemptParts,
  model: string,
  request: BackendRequest,
  send: SendTo<Result>,
): Promise<Attempt<Result>> {
  const { task, call, log } = request;
  const { signal } = call;
  const firstMs = performance.now();
  const suspected: SuspectedFailure[] = [];
  let failure: EngineError | null = null;
  let broken = 0;
  for (let attempts = 1; ; attempts++) {
    const lease = await acquireBackend(parts, model, request, failure);
    const { backend } = lease;
    log.backend = backend;
    const startMs = performance.now();
    try {
      const result = await send(backend, request);
      for (const one of suspected) one.backend.health.failed(one.error.message);
      return { lease, result, startMs };
    } catch (error) {
      const leftAfterMs = signal.aborted ? performance.now() - startMs : null;
      conclude(parts, lease, signal.aborted ? null : error, {
        firstTokenMs: null,
        work: leftAfterMs === null ? null : { ...noWork, durationMs: leftAfterMs },
      });
      // Tokens generated for a client that left, or before Millrace closed the connection, are billed.
      if (!signal.aborted && !isCutOff(error)) call.onWork?.(false);
      if (signal.aborted || !(isRetryable(error) || isOnlyHere(error))) throw error;
      if (error.isBroken && ++broken >= (namesTokens(task) ? 1 : maxBroken)) throw error;
      if (error.isDoubtful) suspected.push({ backend, error });
      failure = preferOverload(failure, error);
      const unable = isTooLong(error) ? backendsUpTo(parts.backends, model, backend) : [backend];
      request.exclude = new Set([...request.exclude, ...unable]);
      if (attempts >= maxAttempts || performance.now() - firstMs > maxRetryMs) throw failure;
      const pauseMs = findPause(parts, model, backend, error, attempts);
      if (pauseMs === null) continue;
      await pause(pauseMs, signal);
      request.exclude = request.exclude.difference(new Set([backend]));
    } finally {
      log.engineMs += performance.now() - startMs;
    }
  }
}

/**
 * Throws the earlier failure, if there is one, once no backend is left. If the last one was a replica that has ended,
 * the request waits for the next.
 */
async function acquireBackend(
  { router, backends }: AttemptParts,
  model: string,
  { task, call, log, exclude }: BackendRequest,
  failure: EngineError | null,
): Promise<Lease> {
  const { caller, priority, signal } = call;
  const routed = { task, caller, priority, signal, exclude };
  try {
    const lease = router.tryAcquire(model, routed);
    return lease ?? (await waitInQueue(router, model, routed, { call, log }));
  } catch (error) {
    const last = log.backend;
    const mayHaveEnded = last !== null && isNoneLeft(error) && isEnding(failure);
    if (!mayHaveEnded || !(await backends.hasEnded(last)) || signal.aborted)
      throw preferBackendError(failure, error);
  }
  return router.tryAcquire(model, routed) ?? waitInQueue(router, model, routed, { call, log });
}

/**
 * Milliseconds after which the backend is tried again; null if it is not. Only one without
 * alternatives is. A deployment replaces its replicas by itself, and a local engine has a queue of
 * its own.
 */
function findPause(
  { backends }: AttemptParts,
  model: string,
  backend: Backend,
  { isPassing, retryAfterMs }: EngineError,
  attempts: number,
): number | null {
  const usable = backends.forModel(model).filter(({ draining, hold }) => !draining && !hold);
  const isAlone = usable.length === 1 && usable[0] === backend;
  if (!isPassing || !isAlone || backend.kind !== 'upstream' || backend.isReplica) return null;
  const ms = firstPauseMs * 2 ** (attempts - 1) * (0.5 + Math.random());
  return (retryAfterMs ?? 0) > maxPauseMs ? null : Math.max(ms, retryAfterMs ?? 0);
}

async function pause(ms: number, signal: Cancellation): Promise<void> {
  await sleep(ms, undefined, { signal: toSignal(signal) }).catch(() => {});
  signal.throwIfAborted();
}

/** True if the backend may have failed because it ended. Null stands for a stream that broke. */
const isEnding = (failure: EngineError | null) =>
  failure === null || (failure.failure === 'unavailable' && !failure.isDoubtful);

async function waitInQueue(
  router: Router,
  model: string,
  routed: RoutedRequest,
  { call, log }: Pick<BackendRequest, 'call' | 'log'>,
): Promise<Lease> {
  const startMs = performance.now();
  const hold = router.findHold(model);
  // Outside the `try`: a request that a full queue refuses has not waited, and its error is still an HTTP error.
  const lease = router.waitForLease(model, routed);
  if (hold !== null) call.onHeld?.(hold);
  try {
    return await lease;
  } finally {
    const waitedMs = performance.now() - startMs;
    log.queuedMs += waitedMs;
    if (hold !== null) log.coldStartMs = (log.coldStartMs ?? 0) + waitedMs;
  }
}

/** Ends a lease. `error` is null if the response ended well or the client left. */
export function conclude(
  { router, events }: AttemptParts,
  lease: Lease,
  error: unknown,
  { firstTokenMs, work }: Omit<Observation, 'error'> = { firstTokenMs: null, work: null },
): void {
  const { backend } = lease;
  const isFault = error instanceof EngineError && error.failure === 'unavailable';
  // If every backend fails the request, blame the request. A backend that started to respond had accepted it.
  const isSuspected = isFault && error.isDoubtful && firstTokenMs === null;
  if (isFault && !isSuspected) backend.health.failed(error.message);
  else if (isFault && error.isUnreadable) backend.health.spoilt(error.message, lease.caller);
  if (error instanceof EngineError && error.failure !== 'rejected') events.failed(backend, error);
  backend.observe({ firstTokenMs, work, error: isFault ? error.message : null });
  router.release(lease);
}

const noWork = { promptTokens: 0, completionTokens: 0, isPartial: true } as const;

export const toWork = (
  durationMs: number,
  { prompt_tokens: promptTokens, completion_tokens: completionTokens }: Usage,
): Work => ({ durationMs, promptTokens, completionTokens });

/** True if another backend of the model may take what this one rejects. */
const isOnlyHere = (error: unknown): error is EngineError =>
  isTooLong(error) || (error instanceof EngineError && error.code === 'model_not_supported');

/** True if the prompt exceeds a context window that was unknown when the backend was chosen. */
const isTooLong = (error: unknown): error is EngineError =>
  error instanceof EngineError && error.code === 'context_length_exceeded';

/** The given backend and all others whose context window is no larger. */
function backendsUpTo(list: BackendList, model: string, backend: Backend): Backend[] {
  const max = backend.contextWindow;
  if (max === null) return [backend];
  const others = list.forModel(model);
  return [backend, ...others.filter(({ contextWindow }) => (contextWindow ?? Infinity) <= max)];
}

const noneLeft: readonly string[] = ['model_unavailable', 'deployment_unavailable', 'no_backend'];

const isNoneLeft = (error: unknown) =>
  error instanceof EngineError && noneLeft.includes(error.code ?? '');

/** Once every backend was tried, what a backend reported says more than that none is left. */
function preferBackendError(failure: EngineError | null, error: unknown): unknown {
  return isNoneLeft(error) && failure !== null ? failure : error;
}

/** An overload tells the client when to retry, so it is reported rather than a failure: the soonest one. */
function preferOverload(before: EngineError | null, error: EngineError): EngineError {
  if (before === null || before.failure !== 'overloaded') return error;
  if (error.failure !== 'overloaded') return before;
  return (before.retryAfterMs ?? 0) <= (error.retryAfterMs ?? 0) ? before : error;
}
