// From a planned request to an engine's answer: a backend is chosen and asked; one that fails before its
// first byte is replaced by another, one that dies later is continued by another where that is possible.

import type { Backend, BackendList } from './backends/backend.ts';
import { addUsage, afterSeam, canContinue, toContinuation, toLengthEnd } from './continuation.ts';
import {
  type Call,
  type EngineAnswer,
  type EngineChunk,
  EngineError,
  type Task,
  type Usage,
  type WireEvents,
} from './engine.ts';
import type { Plan } from './plan.ts';
import type { Lease, Router } from './routing/router.ts';
import { createTranscripts } from './transcript.ts';

type Items = AsyncIterable<EngineChunk | WireEvents>;

/** What became of a request on its way, written down as it happens. */
export interface Trail {
  /** The one that answers, or was asked last. */
  backend: Backend | null;
  queuedMs: number;
  /** Until the first byte, over all that were asked. */
  engineMs: number;
}

export const newTrail = (): Trail => ({ backend: null, queuedMs: 0, engineMs: 0 });

export interface RunningStream {
  /** May throw once; `resume` then says how it goes on. */
  readonly items: Items;
  /** Told of each item that was sent to the client. */
  sent(item: EngineChunk | WireEvents): void;
  /** The rest of the answer from another backend. Throws the given error where that can't be. */
  resume(error: unknown): Promise<Items>;
  /** Gives its place back. Idempotent. */
  end(): void;
}

export interface Attempts {
  /** Both throw EngineError, or the signal's reason when it aborts. */
  answer(plan: Plan, call: Call, trail: Trail): Promise<EngineAnswer>;
  /** Resolves when the first chunk exists. */
  stream(plan: Plan, call: Call, trail: Trail): Promise<RunningStream>;
}

export interface AttemptEvents {
  /** The backend failed or was overloaded, before its first byte or later. */
  failed(backend: Backend, error: EngineError): void;
  /** A broken stream went on at this backend. */
  continued(backend: Backend): void;
}

/** Backends asked for one answer, and how long after its beginning another one may still be asked. */
const mostTries = 3;
const retryWithinMs = 120_000;
const mostContinuations = 2;

export function createAttempts(list: BackendList, router: Router, events: AttemptEvents): Attempts {
  const openTranscript = createTranscripts();

  /** The first backend that `send` succeeds with. The lease is the caller's to conclude. */
  async function ask<Result>(
    model: string,
    request: { task: Task; call: Call; trail: Trail; exclude: Set<Backend> },
    send: (backend: Backend) => Promise<Result>,
  ): Promise<{ lease: Lease; result: Result; startMs: number }> {
    const { task, call, trail, exclude } = request;
    const { caller, priority, signal } = call;
    const begunMs = performance.now();
    let failure: EngineError | null = null;
    for (let tries = 1; ; tries++) {
      const placed = place();
      const lease = placed instanceof Promise ? await placed : placed;
      const { backend } = lease;
      trail.backend = backend;
      const startMs = performance.now();
      try {
        const result = await send(backend);
        trail.engineMs += performance.now() - startMs;
        return { lease, result, startMs };
      } catch (error) {
        const nowMs = performance.now();
        trail.engineMs += nowMs - startMs;
        conclude(lease, signal.aborted ? null : error, null);
        if (signal.aborted || !(isRetryable(error) || isTooLong(error))) throw error;
        failure = toWorth(failure, error);
        exclude.add(backend);
        if (isTooLong(error)) excludeSmall(model, backend, exclude);
        if (tries >= mostTries || nowMs - begunMs > retryWithinMs) throw failure;
      }
    }

    function place(): Lease | Promise<Lease> {
      try {
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
  function excludeSmall(model: string, { contextWindow }: Backend, exclude: Set<Backend>): void {
    if (contextWindow === null) return;
    for (const other of list.forModel(model)) {
      if (other.contextWindow !== null && other.contextWindow <= contextWindow) exclude.add(other);
    }
  }

  /** `error` is null when it ended well or by the client's wish. */
  function conclude(lease: Lease, error: unknown, firstTokenMs: number | null): void {
    const { backend } = lease;
    const isFault = error instanceof EngineError && error.failure === 'unavailable';
    if (isFault) backend.health.failed(error.message);
    if (error instanceof EngineError && error.failure !== 'rejected') events.failed(backend, error);
    backend.observe({ firstTokenMs, failed: isFault });
    router.release(lease);
  }

  return {
    async answer({ served, task, unfit }, call, trail) {
      const request = { task, call, trail, exclude: new Set(unfit) };
      const { lease, result } = await ask(served.id, request, ({ engine }) =>
        engine.answer(task, call),
      );
      lease.backend.health.succeeded();
      conclude(lease, null, null);
      return result;
    },

    async stream({ served: entry, task, unfit }, call, trail) {
      const exclude = new Set(unfit);
      const transcript = canContinue(entry, task) ? openTranscript(task.kind) : null;
      let usage: Usage | null = null;
      let hasSent = false;
      let isWire = false;
      let sentTokens = 0;
      let lease: Lease | null = null;
      let firstTokenMs = 0;
      let continuations = 0;

      async function begin(next: Task, before: Usage | null): Promise<Items> {
        const told: Call = {
          ...call,
          onUsage(soFar) {
            usage = addUsage(before, soFar);
            call.onUsage?.(usage);
          },
        };
        const request = { task: next, call, trail, exclude };
        const begun = await ask(entry.id, request, ({ engine }) => engine.stream(next, told));
        lease = begun.lease;
        firstTokenMs = performance.now() - begun.startMs;
        // The one that is being tried shall not wait for the end of a long answer to be trusted again; any
        // other is: failing in mid-answer each time must add up.
        if (lease.isProbe) {
          lease.backend.health.succeeded();
          router.proven(lease);
        }
        return begun.result;
      }

      function end(error: unknown = null): void {
        if (lease === null) return;
        const ended = lease;
        lease = null;
        conclude(ended, error, firstTokenMs);
      }

      /** Only those who can, and not the one that failed. */
      function excludeUnable(next: Task): void {
        if (next === task || next.kind !== 'chat') return;
        for (const backend of list.forModel(entry.id)) {
          if (!backend.continues) exclude.add(backend);
        }
      }

      const items = await begin(task, null);
      return {
        items,
        sent(item) {
          hasSent = true;
          transcript?.add(item);
          // What is in the wire's form is counted when it ends, and all that was counted was sent; of chunks
          // some may be lost that were counted.
          isWire = typeof item === 'string';
          if (!isWire) sentTokens = usage?.completion_tokens ?? 0;
        },
        async resume(error) {
          const failed = lease?.backend;
          end(call.signal.aborted ? null : error);
          if (call.signal.aborted || !isRetryable(error)) throw error;
          if (++continuations > mostContinuations) throw error;
          const soFar = transcript?.read() ?? null;
          if (soFar === null) throw error;
          if (soFar.isFinished) return nothing();
          if (isWire) sentTokens = usage?.completion_tokens ?? 0;
          const next = toContinuation(task, soFar.text, sentTokens);
          if (next === null) throw error;
          if (next === 'complete') return nothing(toLengthEnd(task.kind));
          if (failed !== undefined) exclude.add(failed);
          excludeUnable(next);
          try {
            const rest = await begin(next, usage && { ...usage, completion_tokens: sentTokens });
            if (trail.backend !== null) events.continued(trail.backend);
            return hasSent ? afterSeam(rest) : rest;
          } catch {
            // It broke where it broke; that nobody could go on is no other failure.
            throw error;
          }
        },
        end() {
          transcript?.close();
          lease?.backend.health.succeeded();
          end();
        },
      };
    },
  };
}

const isRetryable = (error: unknown): error is EngineError =>
  error instanceof EngineError && error.failure !== 'rejected';

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

async function* nothing(...last: EngineChunk[]): AsyncGenerator<EngineChunk> {
  yield* last;
}
