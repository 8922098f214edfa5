// Texts that repeat in usage rows (ids of accounts, keys and people, models, backends, codes) are stored once, in
// `usage_names`; rows hold their numbers, called refs. A name is dropped after the last day on which a row used it
// has left the table. Imports no Kysely, because the writer's thread runs it on SQLite.

import type { RawTx } from '#db/raw.ts';
import type { StoredUsageRow, UsageNameRow, UsageRequestRow } from '#db/tables/usage-rows.ts';
import { createUpsert } from './upsert.ts';

export const dayMs = 86_400_000;

/** The columns of a row that hold texts, and those that hold their refs. */
const columns = {
  account_id: 'account_ref',
  key_id: 'key_ref',
  user_id: 'user_ref',
  operation: 'operation_ref',
  model: 'model_ref',
  served_model: 'served_model_ref',
  backend: 'backend_ref',
  code: 'code_ref',
} as const;
type Texts = keyof typeof columns;
const pairs = Object.entries(columns) as [Texts, (typeof columns)[Texts]][];

export const toDay = (at: number): number => Math.floor(at / dayMs);

const upsertNames = createUpsert<Omit<UsageNameRow, 'ref'>>('usage_names', {
  types: { name: 'text', last_day: 'bigint' },
  key: ['name'],
  update: 'last_day = excluded.last_day where usage_names.last_day < excluded.last_day',
});

/** Converts rows to what is stored, and adds the names that are new. Must run in the transaction that stores them. */
export async function toStoredRows(
  tx: RawTx,
  rows: readonly UsageRequestRow[],
): Promise<StoredUsageRow[]> {
  const names = new Map<string, number>();
  for (const row of rows) {
    const day = toDay(row.at);
    for (const [text] of pairs) {
      const name = row[text];
      if (name !== null) names.set(name, Math.max(day, names.get(name) ?? day));
    }
  }
  const refs = await addNames(tx, names);
  return rows.map((row) => toStoredRow(row, refs));
}

/** Maps each name to its ref. `names` holds the last day of each. */
export async function addNames(
  tx: RawTx,
  names: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const known = await findNames(tx, [...names.keys()]);
  const stale = [...names]
    .filter(([name, day]) => (known.get(name)?.last_day ?? -1) < day)
    .map(([name, last_day]) => ({ name, last_day }))
    // Servers that add at the same time then wait for each other and can't deadlock.
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  await upsertNames(tx, stale);
  const added = stale.length === 0 ? known : await findNames(tx, [...names.keys()]);
  return new Map([...added].map(([name, { ref }]) => [name, ref]));
}

/** Names that are not stored are missing from the result. */
export async function findNames(
  tx: RawTx,
  names: readonly string[],
): Promise<Map<string, UsageNameRow>> {
  const found = new Map<string, UsageNameRow>();
  // A batch has a handful of names. One statement each is found in the cache of prepared statements.
  if (tx.isPostgres) {
    const { rows } = await tx.run<UsageNameRow>('select * from usage_names where name = any(?)', [
      names,
    ]);
    for (const row of rows) found.set(row.name, row);
    return found;
  }
  for (const name of names) {
    const { rows } = await tx.run<UsageNameRow>('select * from usage_names where name = ?', [name]);
    if (rows[0] !== undefined) found.set(name, rows[0]);
  }
  return found;
}

function toStoredRow(row: UsageRequestRow, refs: ReadonlyMap<string, number>): StoredUsageRow {
  const { account_id, key_id, user_id, operation, model, served_model, backend, code, ...same } =
    row;
  const refOf = (name: string) => refs.get(name) as number;
  const maybeRefOf = (name: string | null) => (name === null ? null : refOf(name));
  return {
    ...same,
    account_ref: refOf(account_id),
    key_ref: maybeRefOf(key_id),
    user_ref: maybeRefOf(user_id),
    operation_ref: refOf(operation),
    model_ref: refOf(model),
    served_model_ref: refOf(served_model),
    backend_ref: refOf(backend),
    code_ref: maybeRefOf(code),
  };
}

/** Converts stored rows back, in one query. */
export async function toRequestRows(
  tx: RawTx,
  stored: readonly StoredUsageRow[],
): Promise<UsageRequestRow[]> {
  const refs = new Set(stored.flatMap((row) => pairs.map(([, column]) => row[column])));
  refs.delete(null);
  const { rows } = await tx.run<UsageNameRow>(
    tx.isPostgres
      ? 'select * from usage_names where ref = any(?)'
      : 'select * from usage_names where ref in (select value from json_each(?))',
    [tx.isPostgres ? [...refs] : JSON.stringify([...refs])],
  );
  const names = new Map<number | null, string>(rows.map(({ ref, name }) => [ref, name]));
  return stored.map((row) => toRequestRow(row, names));
}

function toRequestRow(
  row: StoredUsageRow,
  names: ReadonlyMap<number | null, string>,
): UsageRequestRow {
  const {
    account_ref,
    key_ref,
    user_ref,
    operation_ref,
    model_ref,
    served_model_ref,
    backend_ref,
    code_ref,
    ...same
  } = row;
  const nameOf = (ref: number) => names.get(ref) ?? '';
  const maybeNameOf = (ref: number | null) => names.get(ref) ?? null;
  return {
    ...same,
    account_id: nameOf(account_ref),
    key_id: maybeNameOf(key_ref),
    user_id: maybeNameOf(user_ref),
    operation: nameOf(operation_ref),
    model: nameOf(model_ref),
    served_model: nameOf(served_model_ref),
    backend: nameOf(backend_ref),
    code: maybeNameOf(code_ref),
  };
}
