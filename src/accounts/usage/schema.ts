// Wire types of the usage endpoints. Times are ISO 8601, money is US dollars.

import { page } from '#accounts/schema.ts';
import { closed, noNul, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

const Time = Type.String({ format: 'date-time' });

const steps = ['hour', 'day'] as const;
const groupings = ['model', 'key', 'backend', 'none'] as const;
export const usageStatuses = [
  'done',
  'aborted',
  'failed',
  'refused',
  'running',
  'interrupted',
] as const;

export type Step = (typeof steps)[number];
export type Grouping = (typeof groupings)[number];

const span = { from: Type.Optional(Time), to: Type.Optional(Time) };

const subject = {
  model: Type.Optional(Type.String({ maxLength: 256, pattern: noNul.notEmpty })),
  key: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
};
const filter = { ...subject, status: Type.Optional(OneOf(usageStatuses)) };

export const UsageQuery = Type.Object(
  {
    ...span,
    ...subject,
    step: Type.Optional(OneOf(steps)),
    by: Type.Optional(OneOf(groupings)),
  },
  closed,
);

export const UsageExportQuery = Type.Object({ ...span, ...filter }, closed);

export const UsageRequestsQuery = Type.Object(
  {
    ...page,
    ...filter,
    from: Type.Optional(Time),
  },
  closed,
);

/** Without `at`, only the newest requests are searched. */
export const UsageRequestQuery = Type.Object({ at: Type.Optional(Time) }, closed);

export const UsageLatencyQuery = Type.Object({ from: Type.Optional(Time), ...subject }, closed);

export type UsageQuery = Static<typeof UsageQuery>;
export type UsageExportQuery = Static<typeof UsageExportQuery>;

/** Sums of the ended requests that began in a step. */
export interface UsageBucket {
  start: string;
  /** The model, key or backend; null without grouping, and for requests without a key. */
  group: string | null;
  /** The key's label; null unless grouped by key. */
  label: string | null;
  requests: number;
  errors: number;
  /** Those of the errors that were refused, such as invalid requests and those over a limit. */
  refused: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  cost: number;
  /** The mean time to the first token. */
  first_token_ms: number | null;
}

export interface UsageSummary {
  from: string;
  to: string;
  step: Step;
  by: Grouping;
  data: UsageBucket[];
}

export interface UsageRequest {
  id: string;
  at: string;
  operation: string;
  model: string;
  served_model: string;
  backend: string | null;
  key_id: string | null;
  key_label: string | null;
  /** The person who sent it from the dashboard or the CLI. Null with a key, and if the person is no longer a member. */
  user_email: string | null;
  status: (typeof usageStatuses)[number];
  code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  first_token_ms: number | null;
  duration_ms: number;
  cost: number;
  /** True if tokens and cost are the reserved ones, because the used ones are not known. */
  reserved: boolean;
}

export interface UsageRequestPage {
  data: UsageRequest[];
  /** Pass this as `before` to get the next page; null on the last one. */
  next: string | null;
}

/** Requests of the last minute, of which at most the newest 2,000 are counted. */
export interface UsageLive {
  /** How far back the counted requests reach, in milliseconds. */
  span_ms: number;
  requests: number;
  errors: number;
  /** Those of the errors that were refused. */
  refused: number;
  tokens: number;
}

export interface Percentiles {
  p50: number;
  p95: number;
}

/** Times of those requests that were completed, of the newest 2,000. Null if none was timed. */
export interface UsageLatency {
  requests: number;
  duration_ms: Percentiles | null;
  first_token_ms: Percentiles | null;
}

/** How full the record of requests is. */
export interface UsageStorage {
  rows: number;
  max_rows: number;
  /** `near` from 80% on; `full` if the oldest requests are being deleted. */
  state: 'ok' | 'near' | 'full';
}
