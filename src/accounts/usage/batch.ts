// Writes many requests' rows in one transaction, together with the sums they add to. Rows have a state
// that only moves forward, so the same batch may be written again after an unknown outcome: what it
// already closed is neither changed nor counted a second time.

import { CompiledQuery, sql } from 'kysely';
import type { Database, Tx, UsageRequestRow } from '../../db/tables.ts';
import { addTally, tally } from './tally.ts';

export interface Batch {
  /** Rows that run are set down as they are; the others are closed and counted. Each id once. */
  write(rows: readonly UsageRequestRow[]): Promise<void>;
}

/** Statements of these many rows, the largest first: few texts, so that each is prepared once. */
const sizes = [128, 16, 1] as const;

export function createBatch(db: Database): Batch {
  /** Kysely takes longer to put such a statement into words than a database takes to run it. */
  const texts = new Map<number, string>();

  function toStatement(rows: readonly UsageRequestRow[]): CompiledQuery<{ id: string }> {
    let text = texts.get(rows.length);
    if (text === undefined) {
      text = toText(db, rows);
      texts.set(rows.length, text);
    }
    return CompiledQuery.raw(text, rows.flatMap(toValues)) as CompiledQuery<{ id: string }>;
  }

  async function upsert(tx: Tx, rows: readonly UsageRequestRow[]): Promise<Set<string>> {
    const written = new Set<string>();
    for (let at = 0; at < rows.length; ) {
      const size = sizes.find((one) => one <= rows.length - at) ?? 1;
      const answer = await tx.executeQuery(toStatement(rows.slice(at, at + size)));
      for (const { id } of answer.rows) written.add(id);
      at += size;
    }
    return written;
  }

  return {
    async write(rows) {
      if (rows.length === 0) return;
      await db.transaction().execute(async (tx) => {
        const written = await upsert(tx, rows);
        const closed = rows.filter(({ id, status }) => status !== 'running' && written.has(id));
        await addTally(tx, tally(closed));
      });
    },
  };
}

/** A row that has ended stays as it is, and is not among those returned. */
function toText(db: Database, rows: readonly UsageRequestRow[]): string {
  return db
    .insertInto('usage_requests')
    .values(rows.map(inColumnOrder))
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet((row) => ({
          served_model: row.ref('excluded.served_model'),
          backend: row.ref('excluded.backend'),
          status: row.ref('excluded.status'),
          code: row.ref('excluded.code'),
          prompt_tokens: row.ref('excluded.prompt_tokens'),
          completion_tokens: row.ref('excluded.completion_tokens'),
          cached_tokens: row.ref('excluded.cached_tokens'),
          first_token_ms: row.ref('excluded.first_token_ms'),
          duration_ms: row.ref('excluded.duration_ms'),
          cost_nano: row.ref('excluded.cost_nano'),
          process: row.ref('excluded.process'),
        }))
        .where('usage_requests.status', '=', sql.lit('running')),
    )
    .returning('id')
    .compile().sql;
}

const inColumnOrder = (row: UsageRequestRow): UsageRequestRow => ({
  id: row.id,
  account_id: row.account_id,
  key_id: row.key_id,
  user_id: row.user_id,
  operation: row.operation,
  model: row.model,
  served_model: row.served_model,
  backend: row.backend,
  at: row.at,
  status: row.status,
  code: row.code,
  prompt_tokens: row.prompt_tokens,
  completion_tokens: row.completion_tokens,
  cached_tokens: row.cached_tokens,
  first_token_ms: row.first_token_ms,
  duration_ms: row.duration_ms,
  cost_nano: row.cost_nano,
  process: row.process,
});

const toValues = (row: UsageRequestRow) => Object.values(inColumnOrder(row));
