// SQL text in a transaction, for statements that run so often that building them costs more than running them,
// and for the writer's thread, which loads no Kysely.

import { CompiledQuery, PostgresAdapter } from 'kysely';
import type { Tx } from './tables.ts';

export interface RawTx {
  readonly isPostgres: boolean;
  /** Placeholders are `?` on both databases. */
  run<Row>(text: string, values: readonly unknown[]): Promise<RawResult<Row>>;
}

export interface RawResult<Row> {
  /** The returned rows; empty for a statement that returns none. */
  readonly rows: Row[];
  /** The number of changed rows; only for a statement that returns none. */
  readonly changed: number;
}

export function toRawTx(tx: Tx): RawTx {
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
