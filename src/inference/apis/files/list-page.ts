// A page of a list in OpenAI's form: it follows the row whose id is `after`.

import { type SelectQueryBuilder, sql } from 'kysely';
import { invalidValue } from '#inference/errors.ts';

export interface ListOptions {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly after: string | undefined;
}

interface Listed {
  id: string;
  created_at: number;
}

export interface ListPage<Row> {
  readonly rows: Row[];
  readonly hasMore: boolean;
}

/** `query` selects all rows of the list, in any order. */
export async function readListPage<Tables, Name extends keyof Tables, Row extends Listed>(
  query: SelectQueryBuilder<Tables, Name, Row>,
  { limit, order, after }: ListOptions,
): Promise<ListPage<Row>> {
  let page = query;
  if (after !== undefined) {
    const last = await query.where(sql<boolean>`id = ${after}`).executeTakeFirst();
    if (last === undefined) {
      throw invalidValue('after', 'after must be the id of an object of this list.');
    }
    const beyond = sql.raw(order === 'asc' ? '>' : '<');
    page = page.where(sql<boolean>`(created_at, id) ${beyond} (${last.created_at}, ${last.id})`);
  }
  const rows = await page
    .orderBy(sql`created_at`, order)
    .orderBy(sql`id`, order)
    .limit(limit + 1)
    .execute();
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
}

export const toListBody = <Row extends Listed, Wire>(
  { rows, hasMore }: ListPage<Row>,
  toWire: (row: Row) => Wire,
) => ({
  object: 'list' as const,
  data: rows.map(toWire),
  first_id: rows[0]?.id ?? null,
  last_id: rows.at(-1)?.id ?? null,
  has_more: hasMore,
});
