// Sets down many rows of a table at once, in the form each database takes best: SQLite runs a small statement
// for each row about as quickly as a large one, and tells of each whether it changed anything; PostgreSQL reads
// one JSON text quicker than a statement of 2,000 parameters.

import type { RawTx } from '#db/raw.ts';

/** Answers those that were new, or changed what was there. */
export type Upsert<Row> = (tx: RawTx, rows: readonly Row[]) => Promise<Row[]>;

export interface UpsertOptions<Row> {
  readonly types: Record<keyof Row & string, 'text' | 'bigint'>;
  readonly key: readonly (keyof Row & string)[];
  /** What happens to a row that is there: the rest of the statement, after `do update set`. */
  readonly update: string;
}

export function createUpsert<Row extends object>(
  table: string,
  { types, key, update }: UpsertOptions<Row>,
): Upsert<Row> {
  const names = Object.keys(types) as (keyof Row & string)[];
  const columns = names.join(', ');
  const opening = `insert into ${table} (${columns})`;
  const ending = `on conflict (${key.join(', ')}) do update set ${update}`;
  const one = `${opening} values (${names.map(() => '?').join(', ')}) ${ending}`;
  const many = `${opening} select ${columns} from json_to_recordset(?::json)
    as given(${names.map((name) => `${name} ${types[name]}`).join(', ')})
    ${ending} returning ${key.map((name) => `${table}.${name}`).join(', ')}`;

  async function eachAlone(tx: RawTx, rows: readonly Row[]): Promise<Row[]> {
    const written: Row[] = [];
    for (const row of rows) {
      const values = names.map((name) => row[name]);
      const answer = tx.run(one, values);
      const { changed } = answer instanceof Promise ? await answer : answer;
      if (changed > 0) written.push(row);
    }
    return written;
  }

  async function allAtOnce(tx: RawTx, rows: readonly Row[]): Promise<Row[]> {
    if (rows.length === 0) return [];
    const answer = await tx.run<Row>(many, [JSON.stringify(rows)]);
    const written = new Set(answer.rows.map(toName));
    return rows.filter((row) => written.has(toName(row)));
  }

  const toName = (row: Row) => key.map((name) => row[name]).join('\n');

  return (tx, rows) => (tx.isPostgres ? allAtOnce(tx, rows) : eachAlone(tx, rows));
}

export const addEach = (table: string, names: readonly string[]): string =>
  names.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');
