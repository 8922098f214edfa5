// Reads lists that the server returns a page at a time.

import { InvalidArgumentError } from 'commander';
import type { Client } from './client.ts';

/** The most rows that a page may have. */
const pageRows = 500;

/** Reads rows until there are no more, or `limit` have been read. */
export async function listAll<Row>(
  client: Client,
  path: string,
  {
    limit = Number.POSITIVE_INFINITY,
    query = {},
  }: { limit?: number | undefined; query?: Record<string, string> } = {},
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let before: string | null = null; ; ) {
    const parameters = new URLSearchParams({
      ...query,
      limit: String(Math.min(pageRows, limit - rows.length)),
      ...(before === null ? {} : { before }),
    });
    const page: { data: Row[]; next: string | null } = await client.get(`${path}?${parameters}`);
    rows.push(...page.data);
    if (page.next === null || rows.length >= limit) return rows;
    before = page.next;
  }
}

export function parseLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give an integer of at least 1.');
}
