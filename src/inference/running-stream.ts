// A streamed answer on its way to the client: who generates it now, what was sent of it, and how it goes on
// when that backend dies.

import type { AskBackend, AttemptEvents, Conclude, Trail } from './attempt.ts';
import type { BackendList } from './backends/backend.ts';
import { addUsage, afterSeam, canContinue, toContinuation, toLengthEnd } from './continuation.ts';
import {
  type AnswerStream,
  type Call,
  type EngineChunk,
  isRetryable,
  type Task,
  type Usage,
  type WireEvents,
} from './engine.ts';
import type { Plan } from './plan.ts';
import type { Lease, Router } from './routing/router.ts';
import type { Transcript } from './transcript.ts';

export interface RunningStream {
  /** May throw once; `resume` then says how it goes on. */
  readonly items: AnswerStream;
  /** Told of each item that was sent to the client. */
  sent(item: EngineChunk | WireEvents): void;
  /** The rest of the answer from another backend. Throws the given error where that can't be. */
  resume(error: unknown): Promise<AnswerStream>;
  /** Gives its place back. Idempotent. */
  end(): void;
}

export interface StreamParts {
  list: BackendList;
  router: Router;
  events: AttemptEvents;
  ask: AskBackend;
  conclude: Conclude;
  openTranscript(kind: Task['kind']): Transcript;
}

const mostContinuations = 2;

/** Resolves when the first chunk exists. */
export async function openStream(
  parts: StreamParts,
  { served, task, unfit }: Plan,
  call: Call,
  trail: Trail,
): Promise<RunningStream> {
  const { list, router, events, ask, conclude } = parts;
  const exclude = new Set(unfit);
  let transcript: Transcript | null = null;
  let usage: Usage | null = null;
  let hasSent = false;
  let isWire = false;
  let sentTokens = 0;
  let lease: Lease | null = null;
  let firstTokenMs = 0;
  let continuations = 0;

  async function begin(next: Task, before: Usage | null): Promise<AnswerStream> {
    const told: Call = {
      ...call,
      onUsage(soFar) {
        usage = addUsage(before, soFar);
        call.onUsage?.(usage);
      },
    };
    const request = { task: next, call, trail, exclude };
    const begun = await ask(served.id, request, ({ engine }) => engine.stream(next, told));
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

  function sent(item: EngineChunk | WireEvents): void {
    hasSent = true;
    transcript?.add(item);
    // What is in the wire's form is counted when it ends, and all that was counted was sent; of chunks some
    // may be lost that were counted.
    isWire = typeof item === 'string';
    if (!isWire) sentTokens = usage?.completion_tokens ?? 0;
  }

  /** What is left to ask for; null where it can't go on. */
  function toNext(): Task | 'finished' | 'complete' | null {
    const soFar = transcript?.read() ?? null;
    if (soFar === null) return null;
    if (soFar.isFinished) return 'finished';
    if (isWire) sentTokens = usage?.completion_tokens ?? 0;
    return toContinuation(task, soFar.text, sentTokens);
  }

  /** Only those who can, and not the one that failed. */
  function excludeUnable(next: Task): void {
    if (next === task || next.kind !== 'chat') return;
    for (const backend of list.forModel(served.id)) {
      if (!backend.continues) exclude.add(backend);
    }
  }

  async function resume(error: unknown): Promise<AnswerStream> {
    const failed = lease?.backend;
    end(call.signal.aborted ? null : error);
    if (call.signal.aborted || !isRetryable(error)) throw error;
    if (++continuations > mostContinuations) throw error;
    const next = toNext();
    if (next === null) throw error;
    if (next === 'finished') return nothing();
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
  }

  const items = await begin(task, null);
  if (canContinue(served, task)) transcript = parts.openTranscript(task.kind);
  return {
    items,
    sent,
    resume,
    end() {
      transcript?.close();
      lease?.backend.health.succeeded();
      end();
    },
  };
}

async function* nothing(...last: EngineChunk[]): AsyncGenerator<EngineChunk> {
  yield* last;
}
