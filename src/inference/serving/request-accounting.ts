// The account of one request: what it used and how it ended. Metrics, usage rows, limits and traces are all fed
// from it, so that they can't disagree.

import type { Reservation } from '#accounts/limits/request-limiter.ts';
import type { UsageEntry, UsageFacts, UsageRows } from '#accounts/usage/entry.ts';
import type { Task } from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import {
  elapsedMs,
  type InferenceRequest,
  type RequestIdentity,
  toSharer,
} from '#inference/request.ts';
import { noUsage, type Usage, withCounts } from '#inference/wire/response.ts';
import type { Clock } from '#lib/clock.ts';
import { createRateLimiter, type Rate } from '#lib/limits/rate-limit.ts';
import { toReservedUsage } from './admit.ts';
import type { AttemptLog } from './attempts.ts';
import { costOf } from './cost.ts';
import type { FallbackTokenCounts } from './fallback-token-count.ts';
import type { Meter, ServedRequest } from './meter.ts';
import type { Plan } from './plan.ts';
import type { Trace, Traces } from './traces.ts';

export interface RequestAccounting {
  /** Opens the account of an admitted request. */
  open(request: InferenceRequest, accounted: AccountedRequest): RequestAccount;
  /** Records a request that was refused: it is invalid, over a limit, or names an unknown model. */
  refused(request: RequestIdentity, operation: string, model: string, code: string): void;
}

/** Where each request is reported. */
export interface AccountingParts {
  readonly meter: Meter;
  readonly usageRows: UsageRows;
  readonly traces: Traces | null;
  readonly fallbackCounts: FallbackTokenCounts;
}

export function createRequestAccounting(parts: AccountingParts, clock: Clock): RequestAccounting {
  const refusals = createRateLimiter(clock, maxRefusedCallers);

  return {
    open: (request, accounted) => new RequestAccount(parts, request, accounted),
    refused(request, operation, model, code) {
      if (refusals.take(toSharer(request.caller), refusalRate) > 0) return;
      const { usageRows } = request.background ?? parts;
      const row = usageRows.open(toFacts(request, operation, toStorableName(model)));
      row.close({ status: 'refused', code, durationMs: elapsedMs(request) });
    },
  };
}

/** Callers whose rate is kept. The limiter allocates its table at once. */
const maxRefusedCallers = 10_000;
/** Rate of rows per caller: a refused client may retry as fast as it can. */
const refusalRate: Rate = { intervalMs: 600, burst: 100 };

const maxNameLength = 256;

/** The name may be any text, and PostgreSQL stores neither NUL nor lone surrogates. */
const toStorableName = (name: string) =>
  name.replaceAll('\0', '').slice(0, maxNameLength).toWellFormed();

function toFacts({ id, caller }: RequestIdentity, operation: string, model: string): UsageFacts {
  const { accountId, keyId, userId } = caller;
  return { id, accountId, keyId, userId, operation, model };
}

export interface AccountedRequest {
  readonly operation: string;
  readonly task: Task;
  readonly asked: CatalogEntry;
  readonly reservation: Reservation;
  readonly attempts: AttemptLog;
}

/** The account of one admitted request. It must be closed exactly once, however the request ends. */
export class RequestAccount {
  /** Headers for the backend, so that its own spans join the trace; undefined without tracing. */
  readonly traceHeaders: Readonly<Record<string, string>> | undefined;
  readonly #parts: AccountingParts;
  readonly #request: InferenceRequest;
  readonly #task: Task;
  readonly #asked: CatalogEntry;
  readonly #reservation: Reservation;
  readonly #attempts: AttemptLog;
  readonly #operation: string;
  readonly #row: UsageEntry;
  readonly #trace: Trace | undefined;
  #served: CatalogEntry;
  /** Undefined until the request is planned. */
  #plan: Plan | undefined;
  #promptTokens: number | null = null;
  #isAtWork = false;
  /** True if the usage is what was reserved, because the actual usage is unknown. */
  #isReserved = false;
  #usage: Usage | null = null;
  #firstTokenMs: number | null = null;
  #overheadMs = 0;
  #hasFailed = false;
  #failure: string | null = null;

  constructor(parts: AccountingParts, request: InferenceRequest, accounted: AccountedRequest) {
    const { operation, task, asked, reservation, attempts } = accounted;
    this.#parts = parts;
    this.#request = request;
    this.#task = task;
    this.#asked = asked;
    this.#served = asked;
    this.#reservation = reservation;
    this.#attempts = attempts;
    this.#operation = operation;
    // An alias is shown as it was requested. Metrics have the id, because a pattern has any number of names.
    const { model } = task.body;
    const name = model === asked.id ? model : toStorableName(model);
    const { usageRows } = request.background ?? parts;
    this.#row = usageRows.open(toFacts(request, operation, name));
    this.#trace = parts.traces?.start(request.headers, this.#operation, asked.id);
    this.traceHeaders = this.#trace?.headers;
  }

  setPlan(plan: Plan): void {
    this.#plan = plan;
    this.#served = plan.served;
    this.#promptTokens = plan.promptTokens;
    this.#row.progress({ servedModel: plan.served.id });
  }

  usage(): Usage {
    return this.#usage ?? noUsage;
  }

  /** Takes the usage so far, as an engine reports it. */
  setUsage(soFar: Usage): void {
    // A backend that was cut off has not reported the length of the prompt.
    const isKnown = soFar.prompt_tokens > 0 || this.#promptTokens === null;
    const usage = isKnown ? soFar : withCounts(soFar, this.#promptTokens ?? 0);
    this.#usage = usage;
    // When a server generated the first token of a plain response is unknown: its tokens come at once.
    const isWhole = this.#isAtWork && this.#task.body.stream !== true;
    if (soFar.completion_tokens > 0 && !isWhole) this.#firstTokenMs ??= elapsedMs(this.#request);
    this.#writeCounts(usage, false);
  }

  /**
   * Called with true when a backend works on the request that reports its usage only later, and with false when it
   * stops. While it works, the row of a plain request holds the reservation: if Millrace is killed, the row stays.
   */
  setAtWork(isAtWork: boolean): void {
    this.#isAtWork = isAtWork;
    if (this.#usage !== null || this.#task.body.stream === true) return;
    this.#writeCounts(isAtWork ? this.#toReservedUsage() : noUsage, isAtWork);
    this.#row.progress({ backend: isAtWork ? (this.#attempts.backend?.name ?? '') : '' });
  }

  /**
   * Counts what the backend did not. A response that was cut off while a backend worked on it is charged too: a
   * stream for its prompt, a plain response for what was reserved.
   */
  async completeCounts(): Promise<void> {
    if (this.#usage === null) {
      if (!this.#isAtWork) return;
      this.#isReserved = this.#task.body.stream !== true;
      this.#usage = this.#isReserved ? this.#toReservedUsage() : noUsage;
      if (this.#promptTokens !== null) return this.#setPromptTokens(this.#promptTokens);
    } else if (this.#usage.prompt_tokens > 0) return;
    this.#setPromptTokens(await this.#countPrompt());
  }

  /** Call before the last byte of the response. */
  async save(): Promise<void> {
    if (this.#row.save === null) return;
    await this.completeCounts();
    await this.#row.save();
  }

  /** The usage so far with the length of the prompt, which is counted if no backend has reported it. */
  async countPrompt(): Promise<Usage> {
    const soFar = this.#usage ?? noUsage;
    if (soFar.prompt_tokens > 0) return soFar;
    this.#promptTokens ??= await this.#countPrompt();
    return withCounts(this.#usage ?? noUsage, this.#promptTokens);
  }

  #countPrompt(): Promise<number> {
    const engine = this.#attempts.backend?.engine ?? null;
    return this.#parts.fallbackCounts.ofPrompt(this.#served, this.#sentTask, engine);
  }

  /** What backends get. The task as it came may name addresses, which a backend that counts its tokens would fetch. */
  get #sentTask(): Task {
    return this.#plan?.task ?? this.#task;
  }

  /** Call when the response starts. Returns the milliseconds spent neither in the engine nor in the queue. */
  markFirstByte(): number {
    const { backend, engineMs, queuedMs } = this.#attempts;
    const nowMs = elapsedMs(this.#request);
    if (this.#task.body.stream === true && !this.#hasFailed) this.#firstTokenMs ??= nowMs;
    this.#row.progress({ backend: backend?.name ?? '' });
    this.#overheadMs = Math.max(0, nowMs - engineMs - queuedMs);
    return this.#overheadMs;
  }

  /** Takes the error code that the client was sent. */
  markFailed(code: string | null): void {
    this.#hasFailed = true;
    this.#failure = code;
  }

  close(isClientGone: boolean): void {
    const outcome = isClientGone ? 'aborted' : this.#hasFailed ? 'failed' : 'done';
    const code = outcome === 'failed' ? this.#failure : null;
    const backend = this.#attempts.backend?.name ?? '';
    const durationMs = elapsedMs(this.#request);
    const costNano = this.#chargeOf(this.#usage);
    if (this.#usage !== null && this.#costOf(this.#usage) > costNano)
      this.#attempts.backend?.exceeded(this.#usage);
    const served: ServedRequest = {
      operation: this.#operation,
      asked: this.#asked.id,
      served: this.#served.id,
      backend,
      outcome,
      usage: this.#usage,
      firstTokenMs: this.#firstTokenMs,
      durationMs,
      queuedMs: this.#attempts.queuedMs,
      overheadMs: this.#overheadMs,
    };
    this.#reservation.settle({ tokens: this.#usage?.total_tokens ?? 0, costNano });
    this.#row.close({ status: outcome, code, backend, durationMs, costNano });
    this.#parts.meter.record(served, this.#request.caller);
    this.#request.onServed?.(served);
    this.#trace?.end(served, this.#request.id, code);
  }

  /** At most what was reserved: a budget is never passed. */
  #chargeOf(usage: Usage | null): number {
    return Math.min(this.#costOf(usage), this.#reservation.maxCostNano);
  }

  /** A stand-in is not the model that has the price, so its responses are free. */
  #costOf(usage: Usage | null): number {
    if (this.#attempts.backend?.kind === 'stand-in') return 0;
    const { priceFactor = 1 } = this.#request.background ?? {};
    return Math.round(costOf(this.#served.price, usage) * priceFactor);
  }

  #writeCounts(usage: Usage, isReserved: boolean): void {
    this.#row.progress({
      promptTokens: usage.prompt_tokens,
      completionTokens: usage.completion_tokens,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
      firstTokenMs: this.#firstTokenMs,
      costNano: this.#chargeOf(usage),
      isReserved,
    });
  }

  #setPromptTokens(promptTokens: number): void {
    this.#promptTokens = promptTokens;
    if (this.#usage === null) return;
    this.#usage = withCounts(this.#usage, promptTokens);
    this.#writeCounts(this.#usage, this.#isReserved);
  }

  /** The reservation, with the exact length of the prompt if it was counted. */
  #toReservedUsage(): Usage {
    const reserved = toReservedUsage(this.#sentTask, this.#request.bodyBytes, this.#served);
    return this.#promptTokens === null ? reserved : withCounts(reserved, this.#promptTokens);
  }
}
