// The row of one running request: what is known so far, and its end.

import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { type Indexed, notListed } from '#lib/memory/indexed-list.ts';

export interface UsageFacts {
  /** The request's id, which is globally unique. */
  readonly id: string;
  readonly accountId: string;
  /** Null for a signed-in user. */
  readonly keyId: string | null;
  readonly userId: string | null;
  readonly operation: string;
  /** The model that the request names. */
  readonly model: string;
}

/** Totals so far, never differences. Times are measured from the start of the request. */
export interface UsageProgress {
  readonly servedModel: string;
  readonly backend: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly firstTokenMs: number | null;
  readonly costNano: number;
  /** True if tokens and cost are the reserved ones, because the used ones are not known. */
  readonly isReserved: boolean;
}

export interface UsageEnd extends Partial<UsageProgress> {
  readonly status: 'done' | 'aborted' | 'failed' | 'refused';
  /** The error code if it failed or was refused. */
  readonly code: string | null;
  readonly durationMs: number;
}

export interface UsageEntry {
  progress(update: Partial<UsageProgress>): void;
  /** Resolves once the row as it is now is on disk. Null if responses don't wait for that. */
  readonly save: (() => Promise<void>) | null;
  /** Ends the request. Only the first call counts. */
  close(end: UsageEnd): void;
}

/** Where the rows of requests go. */
export interface UsageRows {
  open(facts: UsageFacts): UsageEntry;
}

/** The recorder's view of an entry. */
export class OpenEntry implements UsageEntry, Indexed {
  index = notListed;
  readonly row: UsageRequestRow;
  /** True if the row has changed since it was last written. */
  dirty = true;
  readonly save: (() => Promise<void>) | null;
  readonly #onClosed: (entry: OpenEntry) => void;

  constructor(
    facts: UsageFacts,
    at: number,
    process: string,
    onClosed: (entry: OpenEntry) => void,
    save: ((entry: OpenEntry) => Promise<void>) | null = null,
  ) {
    this.row = {
      id: facts.id,
      account_id: facts.accountId,
      key_id: facts.keyId,
      user_id: facts.userId,
      operation: facts.operation,
      model: facts.model,
      served_model: facts.model,
      backend: '',
      at,
      status: 'running',
      code: null,
      prompt_tokens: 0,
      completion_tokens: 0,
      cached_tokens: 0,
      first_token_ms: null,
      duration_ms: 0,
      cost_nano: 0,
      reserved: 0,
      process,
    };
    this.#onClosed = onClosed;
    this.save = save && (() => save(this));
  }

  progress(update: Partial<UsageProgress>): void {
    if (this.row.status !== 'running') return;
    apply(this.row, update);
    this.dirty = true;
  }

  close(end: UsageEnd): void {
    const { row } = this;
    if (row.status !== 'running') return;
    apply(row, end);
    row.status = end.status;
    row.code = toCode(end.code);
    row.duration_ms = toCount(end.durationMs);
    row.process = null;
    this.#onClosed(this);
  }
}

function apply(row: UsageRequestRow, update: Partial<UsageProgress>): void {
  if (update.servedModel !== undefined) row.served_model = update.servedModel;
  if (update.backend !== undefined) row.backend = update.backend;
  if (update.promptTokens !== undefined) row.prompt_tokens = toCount(update.promptTokens);
  if (update.completionTokens !== undefined) {
    row.completion_tokens = toCount(update.completionTokens);
  }
  if (update.cachedTokens !== undefined) row.cached_tokens = toCount(update.cachedTokens);
  if (update.costNano !== undefined) row.cost_nano = toCount(update.costNano);
  if (update.isReserved !== undefined) row.reserved = update.isReserved ? 1 : 0;
  if (update.firstTokenMs !== undefined) {
    row.first_token_ms = update.firstTokenMs === null ? null : toCount(update.firstTokenMs);
  }
}

const maxCount = 2 ** 50;

/** Upstreams may report any number, and one that the database rejects would block all later rows. */
const toCount = (value: number): number => (value > 0 ? Math.min(Math.round(value), maxCount) : 0);

const toCode = (code: string | null): string | null =>
  code === null || /^[\w.-]{1,64}$/.test(code) ? code : 'other';
