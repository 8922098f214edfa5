// Wire types of the usage endpoints. Times are ISO 8601, money is US dollars.

import { page } from '#accounts/schema.ts';
import { OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

const closed = { additionalProperties: false } as const;
const Time = Type.String({ format: 'date-time' });

const steps = ['hour', 'day'] as const;
const groupings = ['model', 'key', 'backend', 'none'] as const;
const statuses = ['done', 'aborted', 'failed', 'refused', 'running', 'interrupted'] as const;

export type Step = (typeof steps)[number];
export type Grouping = (typeof groupings)[number];

const span = { from: Type.Optional(Time), to: Type.Optional(Time) };

export const UsageQuery = Type.Object(
  { ...span, step: Type.Optional(OneOf(steps)), by: Type.Optional(OneOf(groupings)) },
  closed,
);

const filter = {
  model: Type.Optional(Type.String({ maxLength: 256, pattern: '^[^\\u0000]+$' })),
  key: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
  status: Type.Optional(OneOf(statuses)),
};

export const UsageExportQuery = Type.Object({ ...span, ...filter }, closed);

export const UsageRequestsQuery = Type.Object(
  {
    ...page,
    ...filter,
  },
  closed,
);

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
  status: (typeof statuses)[number];
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

/** How full the record of requests is. */
export interface UsageStorage {
  rows: number;
  max_rows: number;
  /** `near` from 80% on; `full` if the oldest requests are being deleted. */
  state: 'ok' | 'near' | 'full';
}
