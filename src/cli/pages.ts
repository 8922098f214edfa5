// Reads lists that the server returns whole or a page at a time.

import { InvalidArgumentError } from 'commander';
import type { Client } from './client.ts';

/** The most rows that a page may have. */
const pageRows = 500;

/** Parameters that are undefined are left out. */
type Query = Readonly<Record<string, string | undefined>>;

export function toQuery(query: Query): URLSearchParams {
  const given = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given);
}

/** Reads rows until there are no more, or `limit` have been read. */
export async function listAll<Row>(
  client: Client,
  path: string,
  {
    limit = Number.POSITIVE_INFINITY,
    query = {},
  }: { limit?: number | undefined; query?: Query } = {},
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let before: string | null = null; ; ) {
    const parameters = toQuery({
      ...query,
      limit: String(Math.min(pageRows, limit - rows.length)),
      before: before ?? undefined,
    });
    const page: { data: Row[]; next: string | null } = await client.get(`${path}?${parameters}`);
    rows.push(...page.data);
    if (page.next === null || rows.length >= limit) return rows;
    before = page.next;
  }
}

/** Returns the `read` of a noun whose list the server returns a page at a time. */
export const inPages =
  <Row>(path: string) =>
  (client: Client, limit?: number): Promise<Row[]> =>
    listAll<Row>(client, path, { limit });

/** Returns the `read` of a noun whose list the server returns whole. */
export const atOnce =
  <Row>(path: string) =>
  async (client: Client): Promise<Row[]> =>
    (await client.get<{ data: Row[] }>(path)).data;

export function parseLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give an integer of at least 1.');
}
