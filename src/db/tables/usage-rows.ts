// Rows of usage: a request each, and their sums by hour and by month.

export type UsageStatus = 'done' | 'aborted' | 'failed' | 'refused' | 'running' | 'interrupted';

/** A request as it is stored: its texts are refs of `usage_names`. */
export interface StoredUsageRow
  extends Omit<
    UsageRequestRow,
    | 'account_id'
    | 'key_id'
    | 'user_id'
    | 'operation'
    | 'model'
    | 'served_model'
    | 'backend'
    | 'code'
  > {
  account_ref: number;
  key_ref: number | null;
  user_ref: number | null;
  operation_ref: number;
  model_ref: number;
  served_model_ref: number;
  backend_ref: number;
  code_ref: number | null;
}

export interface UsageNameRow {
  ref: number;
  name: string;
  /** The last day on which a request with this name began, in days since the epoch. */
  last_day: number;
}

/** One inference request. */
export interface UsageRequestRow {
  /** The request's id, which the response carries as `x-request-id`. */
  id: string;
  account_id: string;
  /** Null for a dashboard session. */
  key_id: string | null;
  user_id: string | null;
  operation: string;
  /** The model as requested. */
  model: string;
  served_model: string;
  /** Empty if no backend had received the request yet. */
  backend: string;
  /** When the request began, which determines its hour and its month. */
  at: number;
  status: UsageStatus;
  code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  /** Prompt tokens that the engine had cached. */
  cached_tokens: number;
  /** Null if nothing was generated, and for a plain response of an upstream, whose tokens come at once. */
  first_token_ms: number | null;
  duration_ms: number;
  /** Billionths of a US dollar. */
  cost_nano: number;
  /** 1 if tokens and cost are the reserved amounts, because the used amounts are unknown. */
  reserved: 0 | 1;
  /** Id of the process that serves the request; null once it has ended. */
  process: string | null;
}

/** Sums over the requests that began in an hour and have ended. */
export interface UsageHourRow {
  account_id: string;
  hour: number;
  /** Empty for sessions. */
  key_id: string;
  model: string;
  backend: string;
  requests: number;
  /** Requests that failed, were refused or were interrupted. */
  errors: number;
  /** Those of the errors that were refused: invalid, over a limit, or for an unknown model. */
  refused: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  cost_nano: number;
  /** Sum over `first_tokens` requests. */
  first_token_ms: number;
  first_tokens: number;
}

/** Sums over the requests that began in a month and have ended. */
export interface SpendRow {
  account_id: string;
  /** Empty for the account as a whole. */
  key_id: string;
  /** UTC, e.g. `2026-11`. */
  month: string;
  cost_nano: number;
  /** Prompt and generated tokens. */
  tokens: number;
  requests: number;
}

/** Live servers. Requests of any other server are orphans. */
export interface UsageProcessRow {
  id: string;
  last_seen: number;
}
