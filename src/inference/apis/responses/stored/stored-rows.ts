// Writes the rows of stored responses, inside the transaction of the caller. `addBytes` comes first in each of them: it
// locks the account's sum, so that two transactions of an account can't wait for each other.

import { sql } from 'kysely';
import type { ResponseItemRow, StoredResponseRow } from '#db/tables/response-rows.ts';
import type { Tx } from '#db/tables/tables.ts';
import type { InputItem, OutputItem, ResponseObject } from '#inference/apis/responses/schema.ts';
import { newId } from '#lib/ids.ts';
import { type ChainEnd, isPossibleId, isReference, type Path } from './chain.ts';

/** Responses deleted at once. */
export const maxDeleted = 100;
/** Rows of one statement. SQLite takes 32,766 values. */
const insertedItems = 1_000;

export const liveStatuses = ['queued', 'in_progress'];
export const isLive = (status: string) => liveStatuses.includes(status);

/** Adds to the sum of the account's bytes, and returns it. */
export async function addBytes(tx: Tx, accountId: string, bytes: number): Promise<number> {
  const row = await tx
    .insertInto('response_storage')
    .values({ account_id: accountId, bytes })
    .onConflict((same) =>
      same.column('account_id').doUpdateSet({ bytes: sql`response_storage.bytes + ${bytes}` }),
    )
    .returning('bytes')
    .executeTakeFirstOrThrow();
  return row.bytes;
}

type Placed = Omit<StoredResponseRow, 'line_id' | 'depth' | 'path'>;

/** Inserts a response behind the one that it continues. If that was continued before, a branch begins. */
export async function insertResponse(tx: Tx, row: Placed, end: ChainEnd | null): Promise<void> {
  if (end !== null) {
    const next = { line_id: end.line, depth: end.depth + 1, path: JSON.stringify(end.path) };
    const { numInsertedOrUpdatedRows: inserted } = await tx
      .insertInto('responses')
      .values({ ...row, ...next })
      .onConflict((taken) => taken.columns(['line_id', 'depth']).doNothing())
      .executeTakeFirst();
    if (inserted === 1n) return;
  }
  const path: Path = end === null ? [] : [...end.path, [end.line, end.depth]];
  const depth = end === null ? 0 : end.depth + 1;
  const branch = { line_id: newId(), depth, path: JSON.stringify(path) };
  await tx
    .insertInto('responses')
    .values({ ...row, ...branch })
    .execute();
}

type NewItem = Omit<ResponseItemRow, 'response_id' | 'account_id' | 'position'>;

/** Adds items behind those that the response has. */
export async function insertItems(
  tx: Tx,
  { id: response_id, account_id }: { id: string; account_id: string },
  items: readonly NewItem[],
): Promise<void> {
  if (items.length === 0) return;
  const { last } = await tx
    .selectFrom('response_items')
    .select(({ fn }) => fn.max<number | null>('position').as('last'))
    .where('response_id', '=', response_id)
    .executeTakeFirstOrThrow();
  const first = (last ?? -1) + 1;
  const rows = items.map((item, at) => ({
    response_id,
    position: first + at,
    account_id,
    ...item,
  }));
  for (let at = 0; at < rows.length; at += insertedItems) {
    await tx
      .insertInto('response_items')
      .values(rows.slice(at, at + insertedItems))
      .execute();
  }
}

/** Deletes the account's oldest responses until `excess` bytes are gone, a bounded number at once. */
export async function evict(
  tx: Tx,
  { id, account_id }: { id: string; account_id: string },
  excess: number,
): Promise<void> {
  if (excess > 0) await deleteOldest(tx, account_id, { excess, except: id });
}

/** Returns the number of deleted responses. Those that have not ended stay. */
export async function deleteOldest(
  tx: Tx,
  accountId: string,
  { before, excess, except }: { before?: number; excess?: number; except?: string },
): Promise<number> {
  let query = tx
    .selectFrom('responses')
    .select(['id', 'bytes'])
    .where('account_id', '=', accountId)
    .where('status', 'not in', liveStatuses)
    .orderBy('created_at')
    .orderBy('id')
    .limit(maxDeleted);
  if (before !== undefined) query = query.where('created_at', '<', before);
  if (except !== undefined) query = query.where('id', '!=', except);
  const old: string[] = [];
  let bytes = 0;
  for (const row of await query.execute()) {
    if (excess !== undefined && bytes >= excess) break;
    old.push(row.id);
    bytes += row.bytes;
  }
  if (old.length === 0) return 0;
  await deleteRuns(tx, old);
  await tx.deleteFrom('responses').where('id', 'in', old).execute();
  await addBytes(tx, accountId, -bytes);
  return old.length;
}

/** Before their responses, because the server that runs them locks the two in this order. */
export async function deleteRuns(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.deleteFrom('response_runs').where('response_id', 'in', ids).execute();
}

/** The input as items. */
export function toItems(input: string | readonly InputItem[] | null | undefined): InputItem[] {
  if (typeof input !== 'string') return [...(input ?? [])];
  return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }];
}

export function toRow(item: InputItem | OutputItem, isOutput: boolean): NewItem {
  const content = JSON.stringify(item);
  const given = item.id != null && isPossibleId(item.id) ? item.id : null;
  return {
    id: given ?? `${prefixOf(item.type ?? 'message')}_${newId()}`,
    is_output: Number(isOutput),
    is_ours: Number(isOutput || (given === null && !isReference(item as InputItem))),
    bytes: Buffer.byteLength(content),
    content,
  };
}

export const sizeOf = (items: readonly InputItem[]) =>
  items.reduce((total, item) => total + Buffer.byteLength(JSON.stringify(item)), 0);

const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
};

const prefixOf = (type: string) => prefixes[type] ?? 'item';

export function toBody({ output: _, ...body }: ResponseObject): string {
  return JSON.stringify(body);
}

/** An input item as it is listed: messages in their long form. */
export function toListed(item: InputItem, id: string): InputItem & { id: string } {
  const isMessage = item.type === 'message' || item.type == null;
  if (!isMessage) return { ...item, id: item.id ?? id };
  const kind = item.role === 'assistant' ? 'output_text' : 'input_text';
  const { content } = item;
  return {
    status: 'completed',
    ...item,
    id: item.id ?? id,
    type: 'message',
    content: typeof content === 'string' ? [{ type: kind, text: content }] : (content ?? []),
  };
}
