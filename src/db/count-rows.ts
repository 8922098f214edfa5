// Counts the rows of a query, for limits that are checked in the transaction that adds a row.

import type { SelectQueryBuilder } from 'kysely';
import type { Tables } from '#db/tables/tables.ts';

export async function countRows<Table extends keyof Tables>(
  rows: SelectQueryBuilder<Tables, Table, object>,
): Promise<number> {
  const { count } = await rows
    .select((row) => row.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}
