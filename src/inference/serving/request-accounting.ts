// What one request used and how it went, gathered as it happens. Metrics, usage rows, limits and traces are
// all fed from here, so that they can't disagree.

import type { Reservation } from '#accounts/limits/request-limiter.ts';
import type { UsageEntry, UsageFacts } from '#accounts/usage/entry.ts';
import type { UsageRecorder } from '#accounts/usage/recorder.ts';
import type { Task, Usage } from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { elapsedMs, type Guest, toSharer, type Visit } from '#inference/request.ts';
import type { Clock } from '#lib/clock.ts';
import { createRateLimiter, type Rate } from '#lib/limits/rate-limit.ts';
import type { Trail } from './attempt.ts';
import { costOf } from './cost.ts';
import { toReserved } from './estimate-reservation.ts';
import type { MissingCounts } from './fallback-token-count.ts';
import type { Meter, Served } from './meter.ts';
import type { Plan } from './plan.ts';
import type { Trace, Traces } from './traces.ts';

export interface Recordings {
  open(
    visit: Visit,
    task: Task,
    asked: CatalogEntry,
    way: { reservation: Reservation; trail: Trail },
  ): Recording;
  /** It was not let in: for what it says, for its limits, or because there is no such model. */
  refused(guest: Guest, kind: Task['kind'], model: string, code: string): void;
}

/** Opened once the request was let in; closed exactly once, however it ends. */
export interface Recording {
  /** For the backend, so that its own spans join the trace. */
  readonly traceHeaders: Readonly<Record<string, string>> | undefined;
  planned(plan: Plan): void;
  used(soFar: Usage): void;
  usage(): Usage | null;
  /** A server is at work on it that says what it used only later, or is not any more. */
  worked(isAtWork: boolean): void;
  /**
   * Counts what the backend did not. A response that was cut off while a backend was at work on it counts too:
   * a stream by its prompt, a plain one by what was reserved. Undefined when there is nothing to wait for.
   */
  complete(): Promise<void> | undefined;
  /** Its answer begins; tells the milliseconds spent here so far, neither in the engine nor in the queue. */
  begun(): number;
  /** In one word, as the client was told. */
  failed(code: string | null): void;
  close(aborted: boolean): void;
}

/** Who is told of each request. */
export interface Listeners {
  readonly meter: Meter;
  readonly usageRows: UsageRecorder;
  readonly traces: Traces | null;
  readonly missing: MissingCounts;
}

export function createRecordings(listeners: Listeners, clock: Clock): Recordings {
  const refusals = createRateLimiter(clock);

  return {
    open: (visit, task, asked, way) => new OpenedRecording(listeners, visit, task, asked, way),
    refused(guest, kind, model, code) {
      if (refusals.take(toSharer(guest.caller), refusalRate) > 0) return;
      const row = listeners.usageRows.open(toFacts(guest, kind, toPlainName(model)));
      row.close({ status: 'refused', code, durationMs: elapsedMs(guest) });
    },
  };
}

/** So many rows of a caller: one that is refused may come back as fast as it can. */
const refusalRate: Rate = { intervalMs: 600, burst: 100 };

const longestName = 256;

/** Of a name that may be anything: not every database takes all of it. */
const toPlainName = (name: string) =>
  name.replaceAll('\0', '').slice(0, longestName).toWellFormed();

function toFacts({ id, caller }: Guest, kind: Task['kind'], model: string): UsageFacts {
  const { accountId, keyId, userId } = caller;
  return { id, accountId, keyId, userId, operation: toOperation(kind), model };
}

const toOperation = (kind: Task['kind']) => (kind === 'chat' ? 'chat' : 'text_completion');

/** One is made for every request, hence a class: its methods are made once. */
class OpenedRecording implements Recording {
  readonly traceHeaders: Readonly<Record<string, string>> | undefined;
  readonly #listeners: Listeners;
  readonly #visit: Visit;
  readonly #task: Task;
  readonly #asked: CatalogEntry;
  readonly #reservation: Reservation;
  readonly #trail: Trail;
  readonly #operation: Served['operation'];
  readonly #row: UsageEntry;
  readonly #trace: Trace | undefined;
  #served: CatalogEntry;
  /** As planned; undefined before that. */
  #plan: Plan | undefined;
  #promptTokens: number | null = null;
  #isAtWork = false;
  /** The usage is what was reserved, because what was used is not known. */
  #isReserved = false;
  #usage: Usage | null = null;
  #firstTokenMs: number | null = null;
  #overheadMs = 0;
  #hasFailed = false;
  #failure: string | null = null;

  constructor(
    listeners: Listeners,
    visit: Visit,
    task: Task,
    asked: CatalogEntry,
    { reservation, trail }: { reservation: Reservation; trail: Trail },
  ) {
    const facts = toFacts(visit, task.kind, asked.id);
    this.#listeners = listeners;
    this.#visit = visit;
    this.#task = task;
    this.#asked = asked;
    this.#served = asked;
    this.#reservation = reservation;
    this.#trail = trail;
    this.#operation = toOperation(task.kind);
    this.#row = listeners.usageRows.open(facts);
    this.#trace = listeners.traces?.start(visit.headers, this.#operation, asked.id);
    this.traceHeaders = this.#trace?.headers;
  }

  used(soFar: Usage): void {
    // A backend that was cut off has not said how long the prompt was.
    const isKnown = soFar.prompt_tokens > 0 || this.#promptTokens === null;
    const usage = isKnown ? soFar : withPrompt(soFar, this.#promptTokens ?? 0);
    this.#usage = usage;
    if (soFar.completion_tokens > 0) this.#firstTokenMs ??= elapsedMs(this.#visit);
    this.#progress(usage, false);
  }

  #progress(usage: Usage, isReserved: boolean): void {
    const costNano = costOf(this.#served.price, usage);
    this.#row.progress(toCounts(usage, this.#firstTokenMs, { costNano, isReserved }));
  }

  planned(plan: Plan): void {
    this.#plan = plan;
    this.#served = plan.served;
    this.#promptTokens = plan.promptTokens;
    this.#row.progress({ servedModel: plan.served.id });
  }

  /** A killed server leaves the row as it is, so the row of a plain request has what was reserved from here on. */
  worked(isAtWork: boolean): void {
    this.#isAtWork = isAtWork;
    if (this.#usage !== null || this.#task.body.stream === true) return;
    this.#progress(isAtWork ? this.#toReserved() : nothingYet, isAtWork);
    this.#row.progress({ backend: isAtWork ? (this.#trail.backend?.name ?? '') : '' });
  }

  /** With the prompt's length as it was counted, where it was. */
  #toReserved(): Usage {
    const task = this.#plan?.task ?? this.#task;
    const reserved = toReserved(task, this.#visit.bodyBytes, this.#served);
    return this.#promptTokens === null ? reserved : withPrompt(reserved, this.#promptTokens);
  }

  usage(): Usage | null {
    return this.#usage;
  }

  complete(): Promise<void> | undefined {
    if (this.#usage === null) {
      if (!this.#isAtWork) return undefined;
      this.#isReserved = this.#task.body.stream !== true;
      this.#usage = this.#isReserved ? this.#toReserved() : nothingYet;
      if (this.#promptTokens !== null) {
        this.#counted(this.#promptTokens);
        return undefined;
      }
    } else if (this.#usage.prompt_tokens > 0) return undefined;
    const engine = this.#trail.backend?.engine ?? null;
    return this.#listeners.missing
      .ofPrompt(this.#served, this.#task, engine)
      .then((tokens) => this.#counted(tokens));
  }

  #counted(promptTokens: number): void {
    this.#promptTokens = promptTokens;
    if (this.#usage === null) return;
    this.#usage = withPrompt(this.#usage, promptTokens);
    this.#progress(this.#usage, this.#isReserved);
  }

  begun(): number {
    const { backend, engineMs, queuedMs } = this.#trail;
    const nowMs = elapsedMs(this.#visit);
    if (this.#task.body.stream === true && !this.#hasFailed) this.#firstTokenMs ??= nowMs;
    this.#row.progress({ backend: backend?.name ?? '' });
    this.#overheadMs = Math.max(0, nowMs - engineMs - queuedMs);
    return this.#overheadMs;
  }

  failed(code: string | null): void {
    this.#hasFailed = true;
    this.#failure = code;
  }

  close(aborted: boolean): void {
    const outcome = aborted ? 'aborted' : this.#hasFailed ? 'failed' : 'done';
    const code = outcome === 'failed' ? this.#failure : null;
    const backend = this.#trail.backend?.name ?? '';
    const durationMs = elapsedMs(this.#visit);
    const costNano = costOf(this.#served.price, this.#usage);
    const all: Served = {
      operation: this.#operation,
      asked: this.#asked.id,
      served: this.#served.id,
      backend,
      outcome,
      usage: this.#usage,
      firstTokenMs: this.#firstTokenMs,
      durationMs,
      queuedMs: this.#trail.queuedMs,
      overheadMs: this.#overheadMs,
    };
    this.#reservation.settle({ tokens: this.#usage?.total_tokens ?? 0, costNano });
    this.#row.close({ status: outcome, code, backend, durationMs, costNano });
    this.#listeners.meter.record(all);
    this.#trace?.end(all, this.#visit.id, code);
  }
}

const nothingYet: Usage = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  prompt_tokens_details: null,
};

const withPrompt = (usage: Usage, promptTokens: number): Usage => ({
  ...usage,
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + usage.completion_tokens,
});

const toCounts = (
  usage: Usage,
  firstTokenMs: number | null,
  { costNano, isReserved }: { costNano: number; isReserved: boolean },
) => ({
  promptTokens: usage.prompt_tokens,
  completionTokens: usage.completion_tokens,
  cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  firstTokenMs,
  costNano,
  isReserved,
});
