// One request's row while it is being made: what is known so far, and the one moment it ends.

import type { UsageRequestRow } from '#db/tables.ts';
import { type Indexed, notListed } from '#lib/memory/indexed-list.ts';

export interface UsageFacts {
  /** Unique for ever; the request's own id. */
  readonly id: string;
  readonly accountId: string;
  /** Null for a person's session. */
  readonly keyId: string | null;
  readonly userId: string | null;
  readonly operation: string;
  /** As asked for. */
  readonly model: string;
}

/** All of them are totals so far, never differences. */
export interface UsageProgress {
  readonly servedModel: string;
  readonly backend: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly firstTokenMs: number | null;
  readonly costNano: number;
  /** Tokens and cost are those that were reserved, because those that were used are not known. */
  readonly isReserved: boolean;
}

export interface UsageEnd extends Partial<UsageProgress> {
  readonly status: 'done' | 'aborted' | 'failed' | 'refused';
  /** Why it failed or was refused, in one word. */
  readonly code: string | null;
  readonly durationMs: number;
}

export interface UsageEntry {
  progress(update: Partial<UsageProgress>): void;
  /** The first call counts; others are ignored. */
  close(end: UsageEnd): void;
}

/** An entry as its keeper sees it. One is made for every request, hence a class: its methods are made once. */
export class OpenEntry implements UsageEntry, Indexed {
  index = notListed;
  readonly row: UsageRequestRow;
  /** Something has changed since it was last written. */
  dirty = true;
  readonly #onClosed: (entry: OpenEntry) => void;

  constructor(
    facts: UsageFacts,
    at: number,
    process: string,
    onClosed: (entry: OpenEntry) => void,
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

const most = 2 ** 50;

/** Upstreams say what they like, and one number the database refuses would hold up all that follow it. */
const toCount = (value: number): number => (value > 0 ? Math.min(Math.round(value), most) : 0);

const toCode = (code: string | null): string | null =>
  code === null || /^[\w.-]{1,64}$/.test(code) ? code : 'other';
