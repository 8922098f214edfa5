// Raw SQL in a transaction: for statements that run so often that building them costs more than running them, and
// for the writer's thread, which does not load Kysely.

import { CompiledQuery, PostgresAdapter } from 'kysely';
import type { Database, Tx } from '#db/tables/tables.ts';

export interface RawTx {
  readonly isPostgres: boolean;
  /** Placeholders are `?` on both databases. */
  run<Row>(text: string, values: readonly unknown[]): Promise<RawResult<Row>>;
}

export interface RawResult<Row> {
  /** Rows that the statement returns; empty if it returns none. */
  readonly rows: Row[];
  /** Number of changed rows; only set for statements that return no rows. */
  readonly changed: number;
}

export function toRawTx(tx: Database | Tx): RawTx {
  const isPostgres = tx.getExecutor().adapter instanceof PostgresAdapter;
  return {
    isPostgres,
    async run<Row>(text: string, values: readonly unknown[]) {
      const query = CompiledQuery.raw(isPostgres ? toNumberedPlaceholders(text) : text, [
        ...values,
      ]);
      const { rows, numAffectedRows } = await tx.executeQuery<Row>(query as CompiledQuery<Row>);
      return { rows, changed: Number(numAffectedRows ?? 0) };
    },
  };
}

function toNumberedPlaceholders(text: string): string {
  let count = 0;
  return text.replaceAll('?', () => `$${++count}`);
}
