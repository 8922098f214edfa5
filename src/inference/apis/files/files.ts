// Files in the database, so that every server on it can read them. A content is stored in blocks and never held as a
// whole.

import { setImmediate as turn } from 'node:timers/promises';
import { lockAccount } from '#db/lock-account.ts';
import type { FileRow } from '#db/tables/batch-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { diskFull } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { fileInUse, fileNotFound, fileTooLarge, storageFull, tooManyFiles } from './errors.ts';
import { type ListOptions, type ListPage, readListPage } from './list-page.ts';

export interface FileLimits {
  readonly maxFileBytes: number;
  /** Maximum bytes of all files of an account. */
  readonly maxAccountBytes: number;
  /** How long a file is kept, unless its upload says otherwise. */
  readonly keepMs: number;
  /** Bytes that the database may still take; null if that is not known, as for PostgreSQL. */
  readonly freeBytes: (() => Promise<number>) | null;
  /** Bytes of the disk that stay free. */
  readonly diskReserveBytes: number;
}

export interface Files {
  readonly limits: FileLimits;
  /** Begins a file that is invisible until it is finished. It is deleted if nothing is added for ten minutes. */
  begin(accountId: string): Promise<string>;
  /** Adds to a file that was begun. */
  append(accountId: string, id: string, bytes: Uint8Array): Promise<void>;
  finish(accountId: string, id: string, options: FinishOptions): Promise<FileRow>;
  get(accountId: string, id: string): Promise<FileRow>;
  list(
    accountId: string,
    purpose: string | undefined,
    page: ListOptions,
  ): Promise<ListPage<FileRow>>;
  /** Yields the content from an offset on. */
  read(id: string, from?: number): AsyncGenerator<Uint8Array>;
  /** Hides the file. Its blocks are deleted by `sweep`. */
  delete(accountId: string, id: string): Promise<void>;
  /** Hides a file that was begun and not finished. */
  abandon(id: string): Promise<void>;
  /** Deletes what has expired or was deleted. */
  sweep(): Promise<void>;
}

export interface FinishOptions {
  readonly filename: string;
  /** Null for the server's setting. */
  readonly keepMs: number | null;
}

export const blockBytes = 262_144;
const maxFiles = 10_000;
/** A file that was begun and got nothing for so long was left behind by a server that died. */
const abandonedMs = 600_000;
/** Blocks read or deleted at once. */
const blocksAtOnce = 8;
/** Files that one sweep deletes. */
const sweptFiles = 100;

/** States of a batch in which its input is needed. */
const reading = ['validating', 'in_progress', 'finalizing', 'cancelling'] as const;

export function createFiles(db: Database, clock: Clock, limits: FileLimits): Files {
  const visible = (accountId: string) =>
    db
      .selectFrom('files')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('state', '=', 'ready')
      .where((row) => row.or([row('expires_at', 'is', null), row('expires_at', '>', clock.now())]));

  async function get(accountId: string, id: string): Promise<FileRow> {
    const row = await visible(accountId).where('id', '=', id).executeTakeFirst();
    if (row === undefined) throw fileNotFound(id);
    return row;
  }

  return {
    limits,
    begin: (accountId) => begin(db, clock, accountId),
    append: (accountId, id, bytes) => append({ db, clock, limits }, accountId, id, bytes),
    async finish(accountId, id, { filename, keepMs }) {
      const now = clock.now();
      const expires_at = now + (keepMs ?? limits.keepMs);
      await db
        .updateTable('files')
        .set({ filename, state: 'ready', created_at: now, expires_at })
        .where('id', '=', id)
        .where('state', '=', 'writing')
        .execute();
      return get(accountId, id);
    },
    get,
    list(accountId, purpose, page) {
      const all = visible(accountId);
      return readListPage(
        purpose === undefined ? all : all.where('purpose', '=', purpose as FileRow['purpose']),
        page,
      );
    },
    read: (id, from = 0) => readBlocks(db, id, from),
    delete: (accountId, id) => hide(db, accountId, id),
    async abandon(id) {
      await db
        .updateTable('files')
        .set({ state: 'deleted', expires_at: 0 })
        .where('id', '=', id)
        .where('state', '=', 'writing')
        .execute();
    },
    sweep: () => sweep(db, clock),
  };
}

function begin(db: Database, clock: Clock, accountId: string): Promise<string> {
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const { count } = await readUse(tx, accountId);
    if (count >= maxFiles) throw tooManyFiles(maxFiles);
    const file = newFile(accountId, 'batch', clock.now());
    await tx
      .insertInto('files')
      .values({ ...file, expires_at: file.created_at + abandonedMs })
      .execute();
    return file.id;
  });
}

interface AppendParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly limits: FileLimits;
}

async function append(
  { db, clock, limits }: AppendParts,
  accountId: string,
  id: string,
  bytes: Uint8Array,
): Promise<void> {
  await checkDisk(limits, bytes.length);
  await db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const { used } = await readUse(tx, accountId);
    if (used + bytes.length > limits.maxAccountBytes) throw storageFull(limits.maxAccountBytes);
    const length = await appendBlocks(tx, id, [bytes]);
    if (length > limits.maxFileBytes) throw fileTooLarge(limits.maxFileBytes);
    const expires_at = clock.now() + abandonedMs;
    await tx.updateTable('files').set({ expires_at }).where('id', '=', id).execute();
  });
}

const hide = (db: Database, accountId: string, id: string): Promise<void> =>
  db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const batch = await findReader(tx, id);
    const { numUpdatedRows } = await tx
      .updateTable('files')
      .set(batch === undefined ? { state: 'deleted', expires_at: 0 } : { id })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('state', '=', 'ready')
      .executeTakeFirst();
    if (numUpdatedRows === 0n) throw fileNotFound(id);
    if (batch !== undefined) throw fileInUse(batch);
  });

/** The row of a file without content, which nothing deletes yet. */
export const newFile = (
  accountId: string,
  purpose: FileRow['purpose'],
  created_at: number,
): FileRow => ({
  id: `file-${newId()}`,
  account_id: accountId,
  purpose,
  filename: '',
  bytes: 0,
  state: 'writing',
  created_at,
  expires_at: null,
});

/** Must run in a transaction that locks the file or its owner. Returns the new length of the file. */
export async function appendBlocks(
  tx: Tx,
  id: string,
  blocks: readonly Uint8Array[],
): Promise<number> {
  const file = await tx
    .selectFrom('files')
    .select('bytes')
    .where('id', '=', id)
    .where('state', '=', 'writing')
    .executeTakeFirst();
  if (file === undefined) throw fileNotFound(id);
  let at = file.bytes;
  for (const bytes of blocks) {
    await tx.insertInto('file_blocks').values({ file_id: id, at, bytes }).execute();
    at += bytes.length;
  }
  await tx.updateTable('files').set({ bytes: at }).where('id', '=', id).execute();
  return at;
}

async function readUse(tx: Tx, accountId: string): Promise<{ used: number; count: number }> {
  const { used, count } = await tx
    .selectFrom('files')
    .select(({ fn }) => [fn.sum<number>('bytes').as('used'), fn.countAll<number>().as('count')])
    .where('account_id', '=', accountId)
    .where('state', '!=', 'deleted')
    .executeTakeFirstOrThrow();
  return { used: used ?? 0, count };
}

async function checkDisk(
  { freeBytes, diskReserveBytes }: FileLimits,
  bytes: number,
): Promise<void> {
  if (freeBytes !== null && (await freeBytes()) < bytes + diskReserveBytes) throw diskFull();
}

/** The id of a batch that still needs the file. */
async function findReader(db: Database | Tx, id: string): Promise<string | undefined> {
  const batch = await db
    .selectFrom('batches')
    .select('id')
    .where('state', 'in', reading)
    .where('input_file_id', '=', id)
    .executeTakeFirst();
  return batch?.id;
}

async function* readBlocks(db: Database, id: string, from: number): AsyncGenerator<Uint8Array> {
  const start = await db
    .selectFrom('file_blocks')
    .select('at')
    .where('file_id', '=', id)
    .where('at', '<=', from)
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst();
  for (let next = start?.at ?? from; ; ) {
    const blocks = await db
      .selectFrom('file_blocks')
      .select(['at', 'bytes'])
      .where('file_id', '=', id)
      .where('at', '>=', next)
      .orderBy('at')
      .limit(blocksAtOnce)
      .execute();
    for (const { at, bytes } of blocks) {
      if (bytes.length > from - at) yield at < from ? bytes.subarray(from - at) : bytes;
      next = at + bytes.length;
    }
    if (blocks.length < blocksAtOnce) return;
  }
}

async function sweep(db: Database, clock: Clock): Promise<void> {
  const expired = await db
    .selectFrom('files')
    .select('id')
    .where('expires_at', '<=', clock.now())
    .limit(sweptFiles)
    .execute();
  for (const { id } of expired) {
    if ((await findReader(db, id)) !== undefined) continue;
    await db
      .updateTable('files')
      .set({ state: 'deleted', expires_at: 0 })
      .where('id', '=', id)
      .execute();
    await deleteBlocks(db, id);
    await db.deleteFrom('files').where('id', '=', id).execute();
  }
}

/** A few blocks at a time, so that no transaction is long. */
async function deleteBlocks(db: Database, id: string): Promise<void> {
  for (;;) {
    const some = db
      .selectFrom('file_blocks')
      .select('at')
      .where('file_id', '=', id)
      .orderBy('at')
      .limit(blocksAtOnce);
    const { numDeletedRows } = await db
      .deleteFrom('file_blocks')
      .where('file_id', '=', id)
      .where('at', 'in', some)
      .executeTakeFirst();
    if (numDeletedRows < BigInt(blocksAtOnce)) return;
    await turn();
  }
}
