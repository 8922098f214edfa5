// A streamed response that survives its backend: if the backend fails in mid-response, another one continues the
// text that was sent, and the client sees one stream.

import type { Backend } from '#inference/backends/backend.ts';
import {
  type Call,
  type Engine,
  isCutOff,
  isRetryable,
  type ResponseStream,
  type TakeItem,
  type Task,
} from '#inference/engine.ts';
import type { Lease } from '#inference/routing/router.ts';
import {
  type EngineChunk,
  type Usage,
  type WireEvents,
  withCounts,
} from '#inference/wire/response.ts';
import {
  type Attempt,
  type AttemptLog,
  type AttemptParts,
  type BackendRequest,
  conclude,
  toWork,
  tryBackends,
} from './attempts.ts';
import {
  addUsage,
  afterSeam,
  type Continuation,
  canContinue,
  Transcript,
  toContinuation,
  toGenerated,
  toLengthEnd,
} from './continuation.ts';
import type { Plan } from './plan.ts';

const maxContinuations = 2;
/** The client waits for the count in mid-response. */
const countTimeoutMs = 2000;

/**
 * Opens a stream on the first backend that starts one. Resolves when the first chunk exists; the caller must then
 * call `deliver`. Throws EngineError, or the signal's reason when it aborts.
 */
export async function openStream(
  parts: AttemptParts,
  plan: Plan,
  call: Call,
  log: AttemptLog,
): Promise<ResumableStream> {
  const stream = new ResumableStream(parts, plan, call, log);
  await stream.open();
  return stream;
}

class ResumableStream {
  readonly #parts: AttemptParts;
  readonly #plan: Plan;
  readonly #request: BackendRequest;
  readonly #onUsage: Call['onUsage'];
  #items: ResponseStream | null = null;
  #transcript: Transcript | null = null;
  /** Usage of the backends that failed; null before the first continuation. */
  #usageBefore: Usage | null = null;
  /** Usage of all backends together. */
  #usage: Usage | null = null;
  #hasSent = false;
  #isWire = false;
  #sentTokens = 0;
  #lease: Lease | null = null;
  #firstTokenMs = 0;
  #startMs = 0;
  /** For how long the client kept the response waiting. */
  #blockedMs = 0;
  #continuations = 0;

  constructor(parts: AttemptParts, plan: Plan, call: Call, log: AttemptLog) {
    this.#parts = parts;
    this.#plan = plan;
    this.#onUsage = call.onUsage;
    const onUsage = (soFar: Usage) => this.#reportUsage(addUsage(this.#usageBefore, soFar));
    this.#request = { task: plan.task, call: { ...call, onUsage }, log, exclude: plan.unfit };
  }

  async open(): Promise<void> {
    const { served, task } = this.#plan;
    this.#begin(await tryBackends(this.#parts, served.id, this.#request, send));
    if (canContinue(served, task)) this.#transcript = new Transcript(task.kind);
  }

  /** Passes on the whole response, whichever backends generate it, and ends the lease. Throws if it breaks off. */
  async deliver(take: TakeItem): Promise<void> {
    const takeOne: TakeItem = (item) => {
      const drained = take(item);
      this.#markSent(item);
      return drained === undefined ? undefined : this.#whileBlocked(drained);
    };
    try {
      while (this.#items !== null) {
        try {
          await forEachItem(this.#items, takeOne);
          this.#items = null;
        } catch (error) {
          this.#items = await this.#resume(error);
        }
      }
    } finally {
      this.#lease?.backend.health.succeeded();
      this.#endLease(null);
    }
  }

  async #whileBlocked(drained: Promise<void>): Promise<void> {
    const fromMs = performance.now();
    await drained;
    this.#blockedMs += performance.now() - fromMs;
  }

  #begin({ lease, result, startMs }: Attempt<ResponseStream>): void {
    this.#items = result;
    this.#lease = lease;
    this.#startMs = startMs;
    this.#firstTokenMs = performance.now() - startMs;
    // The first chunk clears a backend on probation: other requests need not wait for the end of a long response.
    // Any other backend is cleared at the end, so that failures in mid-response add up.
    if (lease.isProbe) {
      lease.backend.health.succeeded();
      this.#parts.router.proven(lease);
    }
  }

  #endLease(error: unknown): void {
    if (this.#lease === null) return;
    const ended = this.#lease;
    this.#lease = null;
    const durationMs = performance.now() - this.#startMs - this.#blockedMs;
    const isCounted = error === null && this.#usageBefore === null && this.#usage !== null;
    const isPartial = this.#request.call.signal.aborted;
    const work = isCounted ? { ...toWork(durationMs, this.#usage as Usage), isPartial } : null;
    conclude(this.#parts, ended, error, { firstTokenMs: this.#firstTokenMs, work });
  }

  #markSent(item: EngineChunk | WireEvents): void {
    this.#hasSent = true;
    this.#transcript?.add(item);
    // Wire events are counted when the stream ends, so everything counted was sent. Chunks are counted when they
    // are generated, and some of those may never have been sent.
    this.#isWire = typeof item === 'string';
    if (!this.#isWire) this.#sentTokens = this.#usage?.completion_tokens ?? 0;
  }

  /**
   * Requests the rest of the response from another backend. Returns null if nothing is missing. Throws the given
   * error if the response can't be continued.
   */
  async #resume(error: unknown): Promise<ResponseStream | null> {
    const { log, call } = this.#request;
    const failed = this.#lease?.backend;
    this.#endLease(call.signal.aborted ? null : error);
    if (!call.signal.aborted && !isCutOff(error)) call.onWork?.(false);
    if (call.signal.aborted || !isRetryable(error)) throw error;
    if (++this.#continuations > maxContinuations) throw error;
    const counter = this.#findCounter(failed);
    const next = await this.#toNext(counter);
    if (next === null) throw error;
    if (next === 'finished') return null;
    await this.#countBefore(counter);
    if (next === 'complete') return only(toLengthEnd(this.#plan.task.kind));
    this.#request.task = next.task;
    this.#excludeUnable(next.task, failed);
    try {
      const attempt = await tryBackends(this.#parts, this.#plan.served.id, this.#request, send);
      this.#begin(attempt);
      if (log.backend !== null) this.#parts.events.continued(log.backend);
      return this.#hasSent ? afterSeam(attempt.result, next.blanks) : attempt.result;
    } catch {
      // Report the original error, not the failure to continue.
      throw error;
    }
  }

  /** What is left to request; null if the response can't be continued. */
  async #toNext(
    counter: Engine | undefined,
  ): Promise<Continuation | 'finished' | 'complete' | null> {
    const { task, served } = this.#plan;
    const soFar = this.#transcript?.read() ?? null;
    if (soFar === null) return null;
    if (soFar.isFinished) return 'finished';
    if (this.#isWire) {
      // Without a known vocabulary the usage counts events, and one event may hold several tokens.
      const isGuess = served.vocabulary === 'other';
      const text = toGenerated(task, soFar.text);
      const counted = isGuess ? await counter?.countText?.(text) : null;
      this.#sentTokens = counted ?? this.#usage?.completion_tokens ?? 0;
    }
    return toContinuation(task, soFar.text, this.#sentTokens);
  }

  /** Fixes the usage so far. A backend that failed has usually not reported the length of the prompt. */
  async #countBefore(counter: Engine | undefined): Promise<void> {
    const { task, promptTokens } = this.#plan;
    if (this.#usage === null) return;
    const count = () =>
      counter?.countPromptTokens(task, AbortSignal.timeout(countTimeoutMs)).catch(() => null);
    const prompt_tokens = this.#usage.prompt_tokens || (promptTokens ?? (await count()) ?? 0);
    this.#usageBefore = withCounts(this.#usage, prompt_tokens, this.#sentTokens);
    this.#reportUsage(this.#usageBefore);
  }

  #reportUsage(usage: Usage): void {
    this.#usage = usage;
    this.#onUsage?.(usage);
  }

  /** A healthy backend that can count tokens of the model. */
  #findCounter(failed: Backend | undefined): Engine | undefined {
    const others = this.#parts.backends.forModel(this.#plan.served.id);
    const able = others.find((backend) => {
      const { engine, health } = backend;
      return backend !== failed && engine.countText !== undefined && health.state() === 'healthy';
    });
    return able?.engine;
  }

  /** Excludes the backend that failed and those that can't continue a given beginning. */
  #excludeUnable(next: Task, failed: Backend | undefined): void {
    const exclude = new Set(this.#request.exclude);
    if (failed !== undefined) exclude.add(failed);
    if (next !== this.#plan.task && next.kind === 'chat') {
      for (const backend of this.#parts.backends.forModel(this.#plan.served.id)) {
        if (!backend.continues) exclude.add(backend);
      }
    }
    this.#request.exclude = exclude;
  }
}

const send = ({ engine }: Backend, { task, call }: BackendRequest) => engine.stream(task, call);

async function forEachItem(items: ResponseStream, take: TakeItem): Promise<void> {
  if (items.forEach !== undefined) return items.forEach(take);
  for await (const item of items) await take(item);
}

async function* only(last: EngineChunk): AsyncGenerator<EngineChunk> {
  yield last;
}
