// Lists that are read a page at a time, newest first. A cursor names the last row of a page by its time and its id, so
// rows that arrive meanwhile shift nothing.

import { type SelectQueryBuilder, sql } from 'kysely';
import { invalidBody } from '#lib/errors.ts';
import type { PageQuery } from './schema.ts';

export interface Page<Row> {
  data: Row[];
  /** Cursor of the next page, to be passed as `before`; null on the last page. */
  next: string | null;
}

export interface PageOptions {
  limit: number;
  before?: string | undefined;
}

/** The columns that order a list, and their values in a row. */
export interface PageOrder<Row> {
  at: string;
  id: string;
  of(row: Row): { at: number; id: string };
}

/** The order of tables with these columns. */
export const newestFirst: PageOrder<{ created_at: number; id: string }> = {
  at: 'created_at',
  id: 'id',
  of: ({ created_at, id }) => ({ at: created_at, id }),
};

const defaultRows = 50;

export const toPageOptions = ({ limit, before }: PageQuery): PageOptions => ({
  limit: Number(limit ?? defaultRows),
  before,
});

export async function readPage<Tables, Name extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Name, Row>,
  { limit, before }: PageOptions,
  order: PageOrder<NoInfer<Row>>,
): Promise<Page<Row>> {
  const [at, id] = [sql.ref(order.at), sql.ref(order.id)];
  let page = query;
  if (before !== undefined) {
    const last = parseCursor(before);
    page = page.where(sql<boolean>`(${at}, ${id}) < (${last.at}, ${last.id})`);
  }
  const rows = await page
    .orderBy(at, 'desc')
    .orderBy(id, 'desc')
    .limit(limit + 1)
    .execute();
  const last = rows[limit - 1];
  const hasNext = rows.length > limit && last !== undefined;
  return { data: rows.slice(0, limit), next: hasNext ? toCursor(order.of(last)) : null };
}

/** A page of a list in memory. Its cursor is a position: a change of the list may shift the next page. */
export function slicePage<Row>(
  rows: readonly Row[],
  { limit, before = '0' }: PageOptions,
): Page<Row> {
  if (!/^\d{1,9}$/.test(before)) throw wrongCursor();
  const end = Number(before) + limit;
  return { data: rows.slice(Number(before), end), next: end < rows.length ? String(end) : null };
}

const wrongCursor = () =>
  invalidBody('before must be the `next` of an earlier page of this list.', 'before');

const toCursor = ({ at, id }: { at: number; id: string }) => `${at}.${id}`;

function parseCursor(cursor: string): { at: number; id: string } {
  const [, at, id] = /^(\d{1,15})\.([0-9a-f]{32})$/.exec(cursor) ?? [];
  if (at === undefined || id === undefined) throw wrongCursor();
  return { at: Number(at), id };
}
