// Sets down many requests' rows at once, in the form each database takes fastest: SQLite binds values
// quicker than it reads JSON, PostgreSQL reads one JSON text quicker than a statement of 2,000 parameters.
// Written by hand, because putting such a statement together anew takes longer than running it.

import { CompiledQuery, PostgresAdapter } from 'kysely';
import type { Database, Tx, UsageRequestRow } from '../../db/tables.ts';

/** Answers the ids of those that were new or ran; a row that has ended stays as it is. */
export type Upsert = (tx: Tx, rows: readonly UsageRequestRow[]) => Promise<Set<string>>;

export function createUpsert(db: Database): Upsert {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  const toStatements = isPostgres ? toJsonStatements : toValueStatements;
  return async (tx, rows) => {
    const written = new Set<string>();
    for (const statement of toStatements(rows)) {
      const answer = await tx.executeQuery<{ id: string }>(statement);
      for (const { id } of answer.rows) written.add(id);
    }
    return written;
  };
}

const types: Record<keyof UsageRequestRow, 'text' | 'bigint'> = {
  id: 'text',
  account_id: 'text',
  key_id: 'text',
  user_id: 'text',
  operation: 'text',
  model: 'text',
  served_model: 'text',
  backend: 'text',
  at: 'bigint',
  status: 'text',
  code: 'text',
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  cached_tokens: 'bigint',
  first_token_ms: 'bigint',
  duration_ms: 'bigint',
  cost_nano: 'bigint',
  process: 'text',
};
const names = Object.keys(types) as (keyof UsageRequestRow)[];
/** Known from the start. */
const fixed = ['id', 'account_id', 'key_id', 'user_id', 'operation', 'model', 'at'];
const changes = names.filter((name) => !fixed.includes(name));

const opening = `insert into usage_requests (${names.join(', ')})`;
const ending = `on conflict (id) do update
  set ${changes.map((name) => `${name} = excluded.${name}`).join(', ')}
  where usage_requests.status = 'running' returning id`;

const json = `${opening} select ${names.join(', ')} from json_to_recordset($1::json)
  as given(${names.map((name) => `${name} ${types[name]}`).join(', ')}) ${ending}`;

function toJsonStatements(rows: readonly UsageRequestRow[]): CompiledQuery<{ id: string }>[] {
  return [CompiledQuery.raw(json, [JSON.stringify(rows)]) as CompiledQuery<{ id: string }>];
}

/** Statements of so many rows: few texts, so that each is prepared once. */
const valueTexts = [128, 16, 1].map((size) => {
  const values = Array(size).fill(`(${names.map(() => '?').join(', ')})`);
  return { size, text: `${opening} values ${values.join(', ')} ${ending}` };
});

function* toValueStatements(
  rows: readonly UsageRequestRow[],
): Generator<CompiledQuery<{ id: string }>> {
  let at = 0;
  for (const { size, text } of valueTexts) {
    for (; rows.length - at >= size; at += size) {
      const values = rows.slice(at, at + size).flatMap((row) => names.map((name) => row[name]));
      yield CompiledQuery.raw(text, values) as CompiledQuery<{ id: string }>;
    }
  }
}
