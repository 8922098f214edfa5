// Numbers from the newest request rows: what happens now, and percentiles of times, which sums by the hour can't
// hold. A query reads at most 2,000 rows by an index.

import type { StoredUsageRow } from '#db/tables/usage-rows.ts';
import type { RequestFilter, UsageRequests } from './requests.ts';
import type { Percentiles, UsageLatency, UsageLive } from './schema.ts';

const maxRows = 2_000;
const liveMs = 60_000;

export async function readLive(
  requests: Pick<UsageRequests, 'newest'>,
  accountId: string,
  now: number,
): Promise<UsageLive> {
  const rows = await requests.newest(accountId, { from: now - liveMs }, maxRows);
  const oldest = rows.length < maxRows ? undefined : rows.at(-1);
  return {
    span_ms: oldest === undefined ? liveMs : Math.max(1, now - oldest.at),
    requests: rows.length,
    errors: rows.filter(isError).length,
    refused: rows.filter(({ status }) => status === 'refused').length,
    tokens: rows.reduce((sum, row) => sum + row.prompt_tokens + row.completion_tokens, 0),
  };
}

const isError = ({ status }: StoredUsageRow) =>
  status === 'failed' || status === 'refused' || status === 'interrupted';

export async function readLatency(
  requests: Pick<UsageRequests, 'newest'>,
  accountId: string,
  filter: Pick<RequestFilter, 'from' | 'model' | 'key'>,
): Promise<UsageLatency> {
  const rows = await requests.newest(accountId, filter, maxRows);
  const completed = rows.filter(({ status }) => status === 'done');
  return {
    requests: completed.length,
    duration_ms: toPercentiles(completed.map(({ duration_ms }) => duration_ms)),
    first_token_ms: toPercentiles(completed.flatMap(({ first_token_ms }) => first_token_ms ?? [])),
  };
}

/** By the nearest rank: both are times that a request took. */
function toPercentiles(values: number[]): Percentiles | null {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1];
  const [p50, p95] = [at(0.5), at(0.95)];
  return p50 === undefined || p95 === undefined ? null : { p50, p95 };
}
