// From a planned request to an engine's answer: a backend is chosen and asked; one that fails before its
// first byte is replaced by another, one that dies later is continued by another where that is possible.

import type { Backend, BackendList } from '#inference/backends/backend.ts';
import {
  type Call,
  EngineError,
  type EngineResponse,
  isCutOff,
  isRetryable,
  namesTokens,
  type Task,
} from '#inference/engine.ts';
import type { Lease, Router } from '#inference/routing/router.ts';
import type { Plan } from './plan.ts';
import { RunningStream } from './resumable-stream.ts';
import { createTranscripts } from './transcript.ts';

/** What became of a request on its way, written down as it happens. */
export interface Trail {
  /** The one that answers, or was asked last. */
  backend: Backend | null;
  queuedMs: number;
  /** Until the first byte, over all that were asked. */
  engineMs: number;
}

export const newTrail = (): Trail => ({ backend: null, queuedMs: 0, engineMs: 0 });

export interface Attempts {
  /** Both throw EngineError, or the signal's reason when it aborts. */
  answer(plan: Plan, call: Call, trail: Trail): Promise<EngineResponse>;
  /** Resolves when the first chunk exists. */
  stream(plan: Plan, call: Call, trail: Trail): Promise<RunningStream>;
}

/** What is asked of a backend, and of another where that one fails. */
export interface BackendRequest {
  task: Task;
  readonly call: Call;
  readonly trail: Trail;
  /** Those that can't take it, or have failed. */
  exclude: ReadonlySet<Backend>;
}

export interface Asked<Result> {
  readonly lease: Lease;
  readonly result: Result;
  readonly startMs: number;
}

/** A backend that failed, if another one does not. */
interface Doubt {
  readonly backend: Backend;
  readonly error: EngineError;
}

const noDoubts: readonly Doubt[] = [];

type SendTo<Result> = (backend: Backend, request: BackendRequest) => Promise<Result>;

/** The first backend that `send` succeeds with. The lease is the caller's to conclude. */
export type AskBackend = <Result>(
  model: string,
  request: BackendRequest,
  send: SendTo<Result>,
) => Promise<Asked<Result>>;

/** `error` is null when it ended well or by the client's wish. */
export type Conclude = (lease: Lease, error: unknown, firstTokenMs: number | null) => void;

export interface AttemptEvents {
  /** The backend failed or was overloaded, before its first byte or later. */
  failed(backend: Backend, error: EngineError): void;
  /** A broken stream went on at this backend. */
  continued(backend: Backend): void;
}

/** Backends asked for one answer, and how long after its beginning another one may still be asked. */
const mostTries = 3;
const retryWithinMs = 120_000;
/** Connections that one request may break before it has an answer: it may kill whoever it is sent to. */
const mostBroken = 2;

export function createAttempts(list: BackendList, router: Router, events: AttemptEvents): Attempts {
  async function ask<Result>(
    model: string,
    request: BackendRequest,
    send: SendTo<Result>,
  ): Promise<Asked<Result>> {
    const { task, call, trail } = request;
    const { caller, priority, signal } = call;
    const begunMs = performance.now();
    let failure: EngineError | null = null;
    let doubted: readonly Doubt[] = noDoubts;
    let broken = 0;
    for (let tries = 1; ; tries++) {
      const placed = place();
      const lease = placed instanceof Promise ? await placed : placed;
      const { backend } = lease;
      trail.backend = backend;
      const startMs = performance.now();
      try {
        const result = await send(backend, request);
        trail.engineMs += performance.now() - startMs;
        for (const doubt of doubted) doubt.backend.health.failed(doubt.error.message);
        return { lease, result, startMs };
      } catch (error) {
        const nowMs = performance.now();
        trail.engineMs += nowMs - startMs;
        conclude(lease, signal.aborted ? null : error, null);
        // What it generated for a client that left, or before it was closed here, is paid for.
        if (!signal.aborted && !isCutOff(error)) call.onWork?.(false);
        if (signal.aborted || !(isRetryable(error) || isTooLong(error))) throw error;
        if (error.isBroken && ++broken >= (namesTokens(task) ? 1 : mostBroken)) throw error;
        if (error.isDoubtful) doubted = [...doubted, { backend, error }];
        failure = toWorth(failure, error);
        const failed = isTooLong(error) ? noLarger(model, backend) : [backend];
        request.exclude = new Set([...request.exclude, ...failed]);
        if (tries >= mostTries || nowMs - begunMs > retryWithinMs) throw failure;
      }
    }

    function place(): Lease | Promise<Lease> {
      try {
        const { exclude } = request;
        const got = router.acquire(model, { task, caller, priority, signal, exclude });
        return got instanceof Promise ? wait(got) : got;
      } catch (error) {
        throw toTelling(failure, error);
      }
    }

    async function wait(turn: Promise<Lease>): Promise<Lease> {
      const fromMs = performance.now();
      try {
        return await turn;
      } catch (error) {
        throw toTelling(failure, error);
      } finally {
        trail.queuedMs += performance.now() - fromMs;
      }
    }
  }

  /** What is too long for one is too long for those that hold no more. */
  function noLarger(model: string, backend: Backend): Backend[] {
    const others = backend.contextWindow === null ? [] : list.forModel(model);
    const most = backend.contextWindow ?? 0;
    const small = others.filter(({ contextWindow }) => (contextWindow ?? Infinity) <= most);
    return [backend, ...small];
  }

  function conclude(lease: Lease, error: unknown, firstTokenMs: number | null): void {
    const { backend } = lease;
    const isFault = error instanceof EngineError && error.failure === 'unavailable';
    // Who fails what all others fail as well may be sound; once it has begun to answer, it took the request.
    const isDoubted = isFault && error.isDoubtful && firstTokenMs === null;
    if (isFault && !isDoubted) backend.health.failed(error.message);
    if (error instanceof EngineError && error.failure !== 'rejected') events.failed(backend, error);
    backend.observe({ firstTokenMs, failed: isFault });
    router.release(lease);
  }

  const openTranscript = createTranscripts();
  const streamParts = { list, router, events, ask, conclude, openTranscript };

  return {
    async answer({ served, task, unfit }, call, trail) {
      const request = { task, call, trail, exclude: unfit };
      const { lease, result } = await ask(served.id, request, sendPlain);
      lease.backend.health.succeeded();
      conclude(lease, null, null);
      return result;
    },

    stream: (plan, call, trail) => RunningStream.open(streamParts, plan, call, trail),
  };
}

const sendPlain = ({ engine }: Backend, { task, call }: BackendRequest) =>
  engine.respond(task, call);

/** Too long for this backend, whose window was not known when it was chosen; another may hold more. */
const isTooLong = (error: unknown): error is EngineError =>
  error instanceof EngineError && error.code === 'context_length_exceeded';

/** Where everybody was asked, what they said tells more than that nobody is left. */
function toTelling(failure: EngineError | null, error: unknown): unknown {
  const isNobody = error instanceof EngineError && error.code === 'model_unavailable';
  return isNobody && failure !== null ? failure : error;
}

/** Overload says that a later try may do, so it is told rather than a failure; the sooner, the better. */
function toWorth(before: EngineError | null, error: EngineError): EngineError {
  if (before === null || before.failure !== 'overloaded') return error;
  if (error.failure !== 'overloaded') return before;
  return (before.retryAfterMs ?? 0) <= (error.retryAfterMs ?? 0) ? before : error;
}
