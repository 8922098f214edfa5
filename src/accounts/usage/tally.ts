// Requests that have ended, added up by hour and by month. Summed in memory first, so that a batch of a
// thousand requests touches a handful of rows.

import { sql } from 'kysely';
import type { SpendRow, Tx, UsageHourRow, UsageRequestRow } from '../../db/tables.ts';
import { toMonth } from './spend.ts';

export interface Tally {
  hours: UsageHourRow[];
  spend: SpendRow[];
}

export const hourMs = 3_600_000;

/**
 * The sums of the rows, less what was counted of the others before. In the order of their keys: servers that
 * add at once then wait for each other, and never in a circle.
 */
export function tally(
  rows: Iterable<UsageRequestRow>,
  withdrawn: Iterable<UsageRequestRow> = [],
): Tally {
  const hours = new Map<string, UsageHourRow>();
  const spend = new Map<string, SpendRow>();
  const months = new Map<number, string>();
  function add(row: UsageRequestRow, sign: 1 | -1): void {
    const hour = row.at - (row.at % hourMs);
    const month = months.get(hour) ?? toMonth(hour);
    months.set(hour, month);
    addToHour(hours, row, { hour, sign });
    addToSpend(spend, row, '', { month, sign });
    if (row.key_id !== null) addToSpend(spend, row, row.key_id, { month, sign });
  }
  for (const row of rows) add(row, 1);
  for (const row of withdrawn) add(row, -1);
  return { hours: inOrder(hours), spend: inOrder(spend) };
}

function addToHour(
  hours: Map<string, UsageHourRow>,
  row: UsageRequestRow,
  { hour, sign }: { hour: number; sign: 1 | -1 },
): void {
  const [keyId, isError] = [row.key_id ?? '', row.status !== 'done' && row.status !== 'aborted'];
  const name = [row.account_id, hour, keyId, row.model, row.backend].join('\n');
  let sum = hours.get(name);
  if (sum === undefined) {
    sum = {
      account_id: row.account_id,
      hour,
      key_id: keyId,
      model: row.model,
      backend: row.backend,
      ...noSums,
    };
    hours.set(name, sum);
  }
  sum.requests += sign;
  sum.errors += isError ? sign : 0;
  sum.aborted += row.status === 'aborted' ? sign : 0;
  sum.prompt_tokens += row.prompt_tokens * sign;
  sum.completion_tokens += row.completion_tokens * sign;
  sum.cached_tokens += row.cached_tokens * sign;
  sum.cost_nano += row.cost_nano * sign;
  sum.first_token_ms += (row.first_token_ms ?? 0) * sign;
  sum.first_tokens += row.first_token_ms === null ? 0 : sign;
}

function addToSpend(
  spend: Map<string, SpendRow>,
  row: UsageRequestRow,
  keyId: string,
  { month, sign }: { month: string; sign: 1 | -1 },
): void {
  const name = [row.account_id, keyId, month].join('\n');
  let sum = spend.get(name);
  if (sum === undefined) {
    sum = {
      account_id: row.account_id,
      key_id: keyId,
      month,
      cost_nano: 0,
      tokens: 0,
      requests: 0,
    };
    spend.set(name, sum);
  }
  sum.cost_nano += row.cost_nano * sign;
  sum.tokens += (row.prompt_tokens + row.completion_tokens) * sign;
  sum.requests += sign;
}

/** Adds to what is there, in the transaction that closes the requests. */
export async function addTally(tx: Tx, { hours, spend }: Tally): Promise<void> {
  for (const rows of inChunks(hours)) {
    await tx
      .insertInto('usage_hours')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['account_id', 'hour', 'key_id', 'model', 'backend'])
          .doUpdateSet(addEach('usage_hours', Object.keys(noSums))),
      )
      .execute();
  }
  await forgetEmpty(tx, hours);
  for (const rows of inChunks(spend)) {
    await tx
      .insertInto('spend')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['account_id', 'key_id', 'month'])
          .doUpdateSet(addEach('spend', ['cost_nano', 'tokens', 'requests'])),
      )
      .execute();
  }
}

/** Hours from which everything was withdrawn, as when another backend has answered. */
async function forgetEmpty(tx: Tx, hours: readonly UsageHourRow[]): Promise<void> {
  for (const { account_id, hour, key_id, model, backend, requests } of hours) {
    if (requests >= 0) continue;
    await tx
      .deleteFrom('usage_hours')
      .where('account_id', '=', account_id)
      .where('hour', '=', hour)
      .where('key_id', '=', key_id)
      .where('model', '=', model)
      .where('backend', '=', backend)
      .where('requests', '=', 0)
      .execute();
  }
}

/** Each number of rows is a statement of its own to SQLite, and it remembers a few hundred. */
const chunkRows = 32;

function* inChunks<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += chunkRows) yield rows.slice(at, at + chunkRows);
}

const addEach = (table: string, names: string[]) =>
  Object.fromEntries(
    names.map((name) => [
      name,
      sql<number>`${sql.ref(`${table}.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
    ]),
  );

const noSums = {
  requests: 0,
  errors: 0,
  aborted: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  cost_nano: 0,
  first_token_ms: 0,
  first_tokens: 0,
};

const inOrder = <Row>(rows: Map<string, Row>): Row[] =>
  [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
