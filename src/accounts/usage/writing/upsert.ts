// Upserts many rows of a table in the form each database executes best: SQLite runs one small statement per row
// about as fast as a large one, and reports for each whether it changed anything; PostgreSQL reads one JSON text
// faster than a statement of 2,000 parameters.

import type { RawTx } from '#db/raw.ts';

/** Returns the rows that were inserted or that changed an existing row. */
export type Upsert<Row> = (tx: RawTx, rows: readonly Row[]) => Promise<Row[]>;

export interface UpsertOptions<Row> {
  readonly types: Record<keyof Row & string, 'text' | 'bigint'>;
  readonly key: readonly (keyof Row & string)[];
  /** What happens to an existing row: the rest of the statement after `do update set`. */
  readonly update: string;
}

export function createUpsert<Row extends object>(
  table: string,
  { types, key, update }: UpsertOptions<Row>,
): Upsert<Row> {
  const names = Object.keys(types) as (keyof Row & string)[];
  const columns = names.join(', ');
  const insert = `insert into ${table} (${columns})`;
  const onConflict = `on conflict (${key.join(', ')}) do update set ${update}`;
  const one = `${insert} values (${names.map(() => '?').join(', ')}) ${onConflict}`;
  const many = `${insert} select ${columns} from json_to_recordset(?::json)
    as given(${names.map((name) => `${name} ${types[name]}`).join(', ')})
    ${onConflict} returning ${key.map((name) => `${table}.${name}`).join(', ')}`;

  async function upsertOneByOne(tx: RawTx, rows: readonly Row[]): Promise<Row[]> {
    const written: Row[] = [];
    for (const row of rows) {
      const values = names.map((name) => row[name]);
      const { changed } = await tx.run(one, values);
      if (changed > 0) written.push(row);
    }
    return written;
  }

  async function upsertTogether(tx: RawTx, rows: readonly Row[]): Promise<Row[]> {
    if (rows.length === 0) return [];
    const result = await tx.run<Row>(many, [JSON.stringify(rows)]);
    const written = new Set(result.rows.map(toKeyText));
    return rows.filter((row) => written.has(toKeyText(row)));
  }

  const toKeyText = (row: Row) => key.map((name) => row[name]).join('\n');

  return (tx, rows) => (tx.isPostgres ? upsertTogether(tx, rows) : upsertOneByOne(tx, rows));
}

export const addEach = (table: string, names: readonly string[]): string =>
  names.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');
