// Reads a conversation from its stored responses: two queries for the responses, and two more if items are referred to,
// whatever the number of turns.

import { sql } from 'kysely';
import type { Database } from '#db/tables/tables.ts';
import type { InputItem } from '#inference/apis/responses/schema.ts';
import {
  chainBroken,
  chainTooLong,
  contextTooLarge,
  itemNotFound,
  previousNotFound,
  previousUnfinished,
  tooManyReferences,
} from './stored-errors.ts';

/** Responses of a conversation. Each is a row to read, and perhaps an entry of a path. */
const maxChainResponses = 2_000;
const maxReferences = 10_000;

/** Ids of any other form were not made here. PostgreSQL would refuse some of them. */
const idPattern = /^[\w-]{1,256}$/;

export const isPossibleId = (id: string) => idPattern.test(id);

export type Path = readonly (readonly [line: string, depth: number])[];

/** The place of a response in its conversation. */
export interface ChainEnd {
  readonly id: string;
  readonly line: string;
  readonly depth: number;
  readonly path: Path;
  readonly bytes: number;
}

/** What a new response continues. Throws if it can't be continued. */
export async function findEnd(
  db: Database,
  accountId: string,
  id: string,
  keptSince: number,
): Promise<ChainEnd> {
  const end = await findPlace(db, accountId, id);
  if (end === undefined || end.createdAt < keptSince) throw previousNotFound(id);
  if (end.status === 'queued' || end.status === 'in_progress') throw previousUnfinished(id);
  if (end.depth + 1 >= maxChainResponses) throw chainTooLong(maxChainResponses);
  return end;
}

export async function findPlace(db: Database, accountId: string, id: string) {
  if (!isPossibleId(id)) return undefined;
  const row = await db
    .selectFrom('responses')
    .select(['line_id', 'depth', 'path', 'chain_bytes', 'status', 'created_at'])
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { line_id: line, depth, path, chain_bytes: bytes, status, created_at: createdAt } = row;
  return { id, line, depth, path: JSON.parse(path) as Path, bytes, status, createdAt };
}

/** The items of a response and of all before it, oldest first. */
export async function readItems(
  db: Database,
  accountId: string,
  { id, line, depth, path }: ChainEnd,
): Promise<InputItem[]> {
  const spans = [...path, [line, depth] as const].map(
    ([line, last]) => sql`(cast(${line} as text), cast(${last} as integer))`,
  );
  const { rows } = await sql<ChainRow>`
    with spans (line_id, depth) as (values ${sql.join(spans)})
    select r.id, r.previous_id, i.content from spans
    join responses r on r.line_id = spans.line_id and r.depth <= spans.depth
    left join response_items i on i.response_id = r.id
    where r.account_id = ${accountId}
    order by r.depth, i.position`.execute(db);
  // The place of a deleted response may have been taken by another, so the links count, not the places.
  let last: string | null = null;
  for (const row of rows) {
    if (row.id !== last && row.previous_id !== last) throw chainBroken(id);
    last = row.id;
  }
  if (last !== id) throw chainBroken(id);
  return rows.flatMap(({ content }) => (content === null ? [] : [JSON.parse(content)]));
}

interface ChainRow {
  id: string;
  previous_id: string | null;
  /** Null if the response has no items. */
  content: string | null;
}

export const isReference = (item: InputItem) =>
  item.type === 'item_reference' || (item.type == null && item.role == null);

/** Replaces references by the items they name. The result is at most `maxBytes`, besides what was not a reference. */
export async function resolveReferences(
  db: Database,
  accountId: string,
  items: readonly InputItem[],
  maxBytes: number,
): Promise<readonly InputItem[]> {
  const names = items.flatMap((item) => (isReference(item) ? [item.id ?? ''] : []));
  if (names.length === 0) return items;
  const ids = [...new Set(names)];
  if (names.length > maxReferences) throw tooManyReferences(maxReferences);
  const impossible = ids.find((id) => !isPossibleId(id));
  if (impossible !== undefined) throw itemNotFound(impossible);
  const named = db
    .selectFrom('response_items')
    .where('account_id', '=', accountId)
    .where('is_ours', '=', sql.lit(1))
    .where('id', 'in', ids);
  // Sizes first: a short request may name a great deal.
  const sizes = new Map(
    (await named.select(['id', 'bytes']).execute()).map(({ id, bytes }) => [id, bytes]),
  );
  let bytes = 0;
  for (const id of names) {
    const size = sizes.get(id);
    if (size === undefined) throw itemNotFound(id);
    bytes += size;
  }
  if (bytes > maxBytes) throw contextTooLarge(maxBytes);
  const contents = new Map(
    (await named.select(['id', 'content']).execute()).map(({ id, content }) => [id, content]),
  );
  return items.map((item) => {
    if (!isReference(item)) return item;
    const content = contents.get(item.id ?? '');
    if (content === undefined) throw itemNotFound(item.id ?? '');
    return JSON.parse(content) as InputItem;
  });
}
