// Saved conversations of the playground. Only the person who saved one may change it. Other members of the account
// may read it while it is shared; to anyone else it does not exist.

import { sql } from 'kysely';
import type { Audit } from '#accounts/audit/audit.ts';
import { type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { lockAccount } from '#db/lock-account.ts';
import { toRawTx } from '#db/raw.ts';
import type { ConversationRow } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { conflict, invalidBody, notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import type { ConversationChange, ConversationContent, NewConversation } from './schema.ts';

const maxConversations = 1_000;
const maxTotalBytes = 64 * 1024 * 1024;
/** Characters of a conversation, and of each of its turns, that a search reads. SQLite searches in the main thread. */
const maxSearched = 16_000;
const maxSearchedTurn = 1_000;

export type SummaryRow = Omit<ConversationRow, 'content' | 'search_text'>;
export type SharedRow = ConversationRow & { email: string };

export interface Conversations {
  /** Those of the person, last changed first. `search` is part of a name or of the beginning of a message, in any
   * case. */
  list(
    principal: SessionPrincipal,
    filter: PageOptions & { search?: string | undefined },
  ): Promise<Page<SummaryRow>>;
  get(principal: SessionPrincipal, id: string): Promise<SharedRow>;
  create(principal: SessionPrincipal, input: NewConversation): Promise<SummaryRow>;
  /** New content must name the revision that it replaces, so that two windows can't overwrite each other. */
  update(principal: SessionPrincipal, id: string, change: ConversationChange): Promise<SummaryRow>;
  remove(principal: SessionPrincipal, id: string): Promise<void>;
}

export function createConversations(db: Database, clock: Clock, audit: Audit): Conversations {
  async function create(principal: SessionPrincipal, { name, content }: NewConversation) {
    const now = clock.now();
    const row: ConversationRow = {
      id: newId(),
      account_id: principal.accountId,
      user_id: principal.userId,
      name,
      ...toStored(name, content),
      shared: 0,
      revision: 1,
      created_at: now,
      updated_at: now,
    };
    await db.transaction().execute(async (tx) => {
      await lockAccount(tx, principal.accountId);
      await checkRoom(tx, principal.userId, row.bytes, 1);
      await tx.insertInto('conversations').values(row).execute();
    });
    return row;
  }

  function update(principal: SessionPrincipal, id: string, change: ConversationChange) {
    return db.transaction().execute(async (tx) => {
      await lockAccount(tx, principal.accountId);
      const row = await getOwn(tx, principal, id);
      const { shared } = change;
      const next = { ...row, ...toChange(row, change) };
      if (next.bytes > row.bytes) await checkRoom(tx, row.user_id, next.bytes - row.bytes, 0);
      if (change.content != null) next.updated_at = clock.now();
      await tx.updateTable('conversations').set(next).where('id', '=', id).execute();
      if (shared != null && next.shared !== row.shared) {
        const action = shared ? 'conversation.shared' : 'conversation.unshared';
        await audit.record(tx, principal, { action, resourceId: id });
      }
      return next;
    });
  }

  async function remove(principal: SessionPrincipal, id: string) {
    await db.transaction().execute(async (tx) => {
      const row = await getOwn(tx, principal, id);
      await tx.deleteFrom('conversations').where('id', '=', id).execute();
      if (row.shared === 1) {
        await audit.record(tx, principal, { action: 'conversation.unshared', resourceId: id });
      }
    });
  }

  return {
    list: (principal, filter) => listOwn(db, principal, filter),
    get: (principal, id) => getReadable(db, principal, id),
    create,
    update,
    remove,
  };
}

function listOwn(
  db: Database,
  { accountId, userId }: SessionPrincipal,
  { search, ...page }: PageOptions & { search?: string | undefined },
): Promise<Page<SummaryRow>> {
  let query = db
    .selectFrom('conversations')
    .select(['id', 'account_id', 'user_id', 'name', 'bytes', 'shared', 'revision'])
    .select(['created_at', 'updated_at'])
    .where('account_id', '=', accountId)
    .where('user_id', '=', userId);
  if (search !== undefined) {
    // Not `like`: it compares character by character, which a crafted search makes a hundred times as slow.
    const position = toRawTx(db).isPostgres ? sql.raw('strpos') : sql.raw('instr');
    query = query.where(sql<boolean>`${position}(search_text, ${search.toLowerCase()}) > 0`);
  }
  return readPage(query, page, {
    at: 'updated_at',
    id: 'id',
    of: ({ updated_at, id }) => ({ at: updated_at, id }),
  });
}

async function getReadable(
  db: Database,
  { accountId, userId }: SessionPrincipal,
  id: string,
): Promise<SharedRow> {
  const row = await db
    .selectFrom('conversations as c')
    .innerJoin('users as u', 'u.id', 'c.user_id')
    .selectAll('c')
    .select('u.email')
    .where('c.id', '=', id)
    .where('c.account_id', '=', accountId)
    .where((is) => is.or([is('c.user_id', '=', userId), is('c.shared', '=', 1)]))
    .executeTakeFirst();
  if (row === undefined) throw notFound('This conversation');
  return row;
}

async function getOwn(
  tx: Tx,
  { accountId, userId }: SessionPrincipal,
  id: string,
): Promise<ConversationRow> {
  const row = await tx
    .selectFrom('conversations')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (row === undefined) throw notFound('This conversation');
  return row;
}

function toChange(row: ConversationRow, change: ConversationChange): Partial<ConversationRow> {
  const { name, shared, content, revision } = change;
  if (content != null && revision == null) {
    throw invalidBody('revision is required with content.', 'revision');
  }
  if (content != null && revision !== row.revision) {
    throw conflict('This conversation was changed in another window. Reload it to continue.');
  }
  const newName = name ?? row.name;
  const stored = toStored(newName, content ?? JSON.parse(row.content));
  return {
    name: newName,
    shared: shared == null ? row.shared : Number(shared),
    ...stored,
    revision: content == null ? row.revision : row.revision + 1,
  };
}

function toStored(name: string, content: ConversationContent) {
  const text = JSON.stringify(content);
  const parts = [name, ...content.turns.map((turn) => turn.text.slice(0, maxSearchedTurn))];
  const words = parts.join('\n').slice(0, maxSearched).toLowerCase();
  return {
    content: text,
    // PostgreSQL takes neither zero bytes nor lone surrogates.
    search_text: words.replaceAll('\0', '').toWellFormed(),
    bytes: Buffer.byteLength(text),
  };
}

async function checkRoom(tx: Tx, userId: string, bytes: number, added: number): Promise<void> {
  const { count, total } = await tx
    .selectFrom('conversations')
    .select(({ fn }) => [fn.countAll<number>().as('count'), fn.sum<number>('bytes').as('total')])
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
  if (Number(count) + added > maxConversations) {
    throw conflict(
      `You have ${maxConversations} saved conversations, the maximum. Delete some, or use a temporary chat.`,
    );
  }
  if (Number(total) + bytes > maxTotalBytes) {
    throw conflict(
      `Your saved conversations take ${maxTotalBytes / 1024 / 1024} MiB, the maximum. Delete some, or use a temporary chat.`,
    );
  }
}
