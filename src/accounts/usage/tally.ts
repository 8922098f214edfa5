// Requests that have ended, added up by hour and by month. Summed in memory first, so that a batch of a
// thousand requests touches a handful of rows.

import type { RawTx } from '#db/raw.ts';
import type { SpendRow, UsageHourRow, UsageRequestRow } from '#db/tables.ts';
import { toMonth } from './spend.ts';
import { addEach, createUpsert } from './upsert.ts';

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
    // It used nothing, and a budget is not asked how often it said no.
    if (row.status === 'refused') return;
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
  const name = `${row.account_id}\n${hour}\n${keyId}\n${row.model}\n${row.backend}`;
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
  const name = `${row.account_id}\n${keyId}\n${month}`;
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
export async function addTally(tx: RawTx, { hours, spend }: Tally): Promise<void> {
  await addHours(tx, hours);
  await forgetEmpty(tx, hours);
  await addSpend(tx, spend);
}

/** Hours from which everything was withdrawn, as when another backend has answered. */
async function forgetEmpty(tx: RawTx, hours: readonly UsageHourRow[]): Promise<void> {
  for (const { account_id, hour, key_id, model, backend, requests } of hours) {
    if (requests >= 0) continue;
    await tx.run(deleteEmpty, [account_id, hour, key_id, model, backend]);
  }
}

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

const deleteEmpty = `delete from usage_hours
  where ${hourKey.map((name) => `${name} = ?`).join(' and ')} and requests = 0`;

const addSpend = createUpsert<SpendRow>('spend', {
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

const inOrder = <Row>(rows: Map<string, Row>): Row[] =>
  [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
