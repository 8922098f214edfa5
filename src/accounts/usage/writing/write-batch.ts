// Writes the rows of many requests, and the sums by hour and by month that they add to, in an open
// transaction. The status of a row only moves forward, so a batch may be written again after an
// unknown outcome: rows that it already closed are neither changed nor counted again. Imports no
// Kysely, because the writer's thread runs it on SQLite.

import { hourMs, toMonth } from '#accounts/usage/periods.ts';
import type { RawTx } from '#db/raw.ts';
import type {
  SpendRow,
  StoredUsageRow,
  UsageHourRow,
  UsageRequestRow,
} from '#db/tables/usage-rows.ts';
import { toRequestRows, toStoredRows } from './names.ts';
import { addEach, createUpsert, type UpsertOptions } from './upsert.ts';

const types: UpsertOptions<StoredUsageRow>['types'] = {
  id: 'text',
  account_ref: 'bigint',
  key_ref: 'bigint',
  user_ref: 'bigint',
  operation_ref: 'bigint',
  model_ref: 'bigint',
  served_model_ref: 'bigint',
  backend_ref: 'bigint',
  at: 'bigint',
  status: 'text',
  code_ref: 'bigint',
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  cached_tokens: 'bigint',
  first_token_ms: 'bigint',
  duration_ms: 'bigint',
  cost_nano: 'bigint',
  reserved: 'bigint',
  process: 'text',
};
/** Columns that never change. */
const fixed = ['id', 'account_ref', 'key_ref', 'user_ref', 'operation_ref', 'model_ref', 'at'];
const changing = Object.keys(types).filter((name) => !fixed.includes(name));

/** A row that has ended is not changed. */
const upsert = createUpsert<StoredUsageRow>('usage_requests', {
  types,
  key: ['account_ref', 'at', 'id'],
  update: `${changing.map((name) => `${name} = excluded.${name}`).join(', ')}
    where usage_requests.status = 'running'`,
});

/** Running rows are stored as they are; ended rows are closed and counted. An id must not occur twice. */
export async function writeBatch(tx: RawTx, rows: readonly UsageRequestRow[]): Promise<void> {
  const stored = await toStoredRows(tx, rows);
  const written = new Set(await upsert(tx, stored));
  const late = stored.filter((row) => row.status !== 'running' && !written.has(row));
  const reopened = await reopen(tx, late);
  if (reopened.length > 0) for (const row of await upsert(tx, late)) written.add(row);
  const closed = rows.filter(
    ({ status }, index) => status !== 'running' && written.has(stored[index] as StoredUsageRow),
  );
  await addSums(tx, sumRows(closed, reopened));
}

const reopenOne = `update usage_requests set status = 'running'
  where account_ref = ? and at = ? and id = ? and status = 'interrupted' returning *`;

/**
 * Reopens rows that another server marked as interrupted because this one was silent for too long. Returns them as
 * they were counted then, so that the caller can subtract them.
 */
async function reopen(tx: RawTx, rows: readonly StoredUsageRow[]): Promise<UsageRequestRow[]> {
  const found: StoredUsageRow[] = [];
  for (const { account_ref, at, id } of rows) {
    const result = await tx.run<StoredUsageRow>(reopenOne, [account_ref, at, id]);
    for (const row of result.rows) found.push({ ...row, status: 'interrupted' });
  }
  return found.length === 0 ? [] : toRequestRows(tx, found);
}

export interface UsageSums {
  hours: UsageHourRow[];
  months: SpendRow[];
}

/**
 * Sums the rows in memory, so that a batch of a thousand requests changes a handful of sums. Rows
 * that were counted before and are withdrawn are subtracted. The result is sorted by key: servers
 * that add at the same time then wait for each other and can't deadlock.
 */
export function sumRows(
  rows: Iterable<UsageRequestRow>,
  withdrawn: Iterable<UsageRequestRow> = [],
): UsageSums {
  const hours = new Map<string, UsageHourRow>();
  const months = new Map<string, SpendRow>();
  function add(row: UsageRequestRow, sign: 1 | -1): void {
    const hour = row.at - (row.at % hourMs);
    addToHour(hours, row, { hour, sign });
    // A refused request used nothing, and budgets do not count refusals.
    if (row.status === 'refused') return;
    const month = toMonth(hour);
    addToMonth(months, row, '', { month, sign });
    if (row.key_id !== null) addToMonth(months, row, row.key_id, { month, sign });
  }
  for (const row of rows) add(row, 1);
  for (const row of withdrawn) add(row, -1);
  return { hours: sortByKey(hours), months: sortByKey(months) };
}

function addToHour(
  hours: Map<string, UsageHourRow>,
  row: UsageRequestRow,
  { hour, sign }: { hour: number; sign: 1 | -1 },
): void {
  const [keyId, isError] = [row.key_id ?? '', row.status !== 'done' && row.status !== 'aborted'];
  // Any text may be sent as a model: unknown ones share a sum, so that callers can't add series without end.
  const isUnknown = row.status === 'refused' && row.code === 'model_not_found';
  const model = isUnknown ? '' : row.model;
  const key = `${row.account_id}\n${hour}\n${keyId}\n${model}\n${row.backend}`;
  let sum = hours.get(key);
  if (sum === undefined) {
    sum = {
      account_id: row.account_id,
      hour,
      key_id: keyId,
      model,
      backend: row.backend,
      ...noSums,
    };
    hours.set(key, sum);
  }
  sum.requests += sign;
  sum.errors += isError ? sign : 0;
  sum.refused += row.status === 'refused' ? sign : 0;
  sum.aborted += row.status === 'aborted' ? sign : 0;
  sum.prompt_tokens += row.prompt_tokens * sign;
  sum.completion_tokens += row.completion_tokens * sign;
  sum.cached_tokens += row.cached_tokens * sign;
  sum.cost_nano += row.cost_nano * sign;
  sum.first_token_ms += (row.first_token_ms ?? 0) * sign;
  sum.first_tokens += row.first_token_ms === null ? 0 : sign;
}

function addToMonth(
  months: Map<string, SpendRow>,
  row: UsageRequestRow,
  keyId: string,
  { month, sign }: { month: string; sign: 1 | -1 },
): void {
  const key = `${row.account_id}\n${keyId}\n${month}`;
  let sum = months.get(key);
  if (sum === undefined) {
    sum = {
      account_id: row.account_id,
      key_id: keyId,
      month,
      cost_nano: 0,
      tokens: 0,
      requests: 0,
    };
    months.set(key, sum);
  }
  sum.cost_nano += row.cost_nano * sign;
  sum.tokens += (row.prompt_tokens + row.completion_tokens) * sign;
  sum.requests += sign;
}

/** Adds the sums to those in the database. Must run in the transaction that closes the requests. */
export async function addSums(tx: RawTx, { hours, months }: UsageSums): Promise<void> {
  await addHours(tx, hours);
  await deleteEmptyHours(tx, hours);
  await addMonths(tx, months);
}

/** An hour becomes empty when its only requests are withdrawn and counted under another backend. */
async function deleteEmptyHours(tx: RawTx, hours: readonly UsageHourRow[]): Promise<void> {
  for (const { account_id, hour, key_id, model, backend, requests } of hours) {
    if (requests >= 0) continue;
    await tx.run(deleteEmptyHour, [account_id, hour, key_id, model, backend]);
  }
}

const noSums = {
  requests: 0,
  errors: 0,
  refused: 0,
  aborted: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  cost_nano: 0,
  first_token_ms: 0,
  first_tokens: 0,
};

const hourKey = ['account_id', 'hour', 'key_id', 'model', 'backend'] as const;

const addHours = createUpsert<UsageHourRow>('usage_hours', {
  types: {
    account_id: 'text',
    hour: 'bigint',
    key_id: 'text',
    model: 'text',
    backend: 'text',
    requests: 'bigint',
    errors: 'bigint',
    refused: 'bigint',
    aborted: 'bigint',
    prompt_tokens: 'bigint',
    completion_tokens: 'bigint',
    cached_tokens: 'bigint',
    cost_nano: 'bigint',
    first_token_ms: 'bigint',
    first_tokens: 'bigint',
  },
  key: hourKey,
  update: addEach('usage_hours', Object.keys(noSums)),
});

const deleteEmptyHour = `delete from usage_hours
  where ${hourKey.map((name) => `${name} = ?`).join(' and ')} and requests = 0`;

const addMonths = createUpsert<SpendRow>('spend', {
  types: {
    account_id: 'text',
    key_id: 'text',
    month: 'text',
    cost_nano: 'bigint',
    tokens: 'bigint',
    requests: 'bigint',
  },
  key: ['account_id', 'key_id', 'month'],
  update: addEach('spend', ['cost_nano', 'tokens', 'requests']),
});

const sortByKey = <Row>(rows: Map<string, Row>): Row[] =>
  [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
