// Statements as text in a transaction, for those that are written so often that putting them together costs
// more than running them, and for the thread that has no Kysely.

import { CompiledQuery, PostgresAdapter } from 'kysely';
import type { Tx } from './tables.ts';

export interface RawTx {
  readonly isPostgres: boolean;
  /** Values stand as `?` in the text, on both databases. */
  run<Row>(text: string, values: readonly unknown[]): RawAnswer<Row> | Promise<RawAnswer<Row>>;
}

export interface RawAnswer<Row> {
  /** What a statement that returns something returned. */
  readonly rows: Row[];
  /** How many rows one that returns nothing changed. */
  readonly changed: number;
}

export function toRawTx(tx: Tx): RawTx {
  const isPostgres = tx.getExecutor().adapter instanceof PostgresAdapter;
  return {
    isPostgres,
    async run<Row>(text: string, values: readonly unknown[]) {
      const query = CompiledQuery.raw(isPostgres ? numbered(text) : text, [...values]);
      const { rows, numAffectedRows } = await tx.executeQuery<Row>(query as CompiledQuery<Row>);
      return { rows, changed: Number(numAffectedRows ?? 0) };
    },
  };
}

function numbered(text: string): string {
  let count = 0;
  return text.replaceAll('?', () => `$${++count}`);
}
