// Reads request rows: one by its id, a page at a time, newest first, or all of a time span for export, oldest first.

import { sql } from 'kysely';
import { type PageOptions, readPage } from '#accounts/paging.ts';
import { findNames, toRequestRows } from '#accounts/usage/writing/names.ts';
import { type RawTx, toRawTx } from '#db/raw.ts';
import type { Database } from '#db/tables/tables.ts';
import type { StoredUsageRow, UsageRequestRow, UsageStatus } from '#db/tables/usage-rows.ts';
import { toDollars } from './dollars.ts';
import type { UsageRequest, UsageRequestPage } from './schema.ts';

export interface RequestFilter {
  model?: string | undefined;
  key?: string | undefined;
  status?: UsageStatus | undefined;
  /** Only requests that began then or later, in milliseconds. */
  from?: number | undefined;
}

export interface UsageRequests {
  /** Without its time, only the newest 20,000 requests are searched: ids have no index of their own. */
  find(accountId: string, id: string, at: number | undefined): Promise<UsageRequest | undefined>;
  /** The newest requests that match, without the names that their refs stand for. */
  newest(accountId: string, filter: RequestFilter, limit: number): Promise<StoredUsageRow[]>;
  /** A page begins where the last one ended, even if requests arrived in between. */
  page(accountId: string, filter: RequestFilter & PageOptions): Promise<UsageRequestPage>;
  /** Requests that began in the span, 500 at a time. */
  between(
    accountId: string,
    filter: RequestFilter & { from: number; to: number },
  ): AsyncGenerator<UsageRequest[]>;
}

const exportRows = 500;
const searchedRows = 20_000;

export function createUsageRequests(db: Database): UsageRequests {
  return {
    async find(accountId, id, givenAt) {
      const at = givenAt ?? (await findTime(db, accountId, id));
      const query = at === undefined ? undefined : await select(db, accountId, {});
      if (query === undefined || at === undefined) return undefined;
      const rows = await query.where('u.at', '=', at).where('u.id', '=', id).execute();
      return (await toRequests(db, rows))[0];
    },

    async newest(accountId, filter, limit) {
      const query = await select(db, accountId, filter);
      return query?.orderBy('u.at', 'desc').orderBy('u.id', 'desc').limit(limit).execute() ?? [];
    },

    async page(accountId, { limit, before, ...filter }) {
      const order = { at: 'u.at', id: 'u.id', of: (row: { at: number; id: string }) => row };
      const query = await select(db, accountId, filter);
      if (query === undefined) return { data: [], next: null };
      const { data, next } = await readPage(query, { limit, before }, order);
      return { data: await toRequests(db, data), next };
    },

    async *between(accountId, { from, to, ...filter }) {
      const query = await select(db, accountId, filter);
      if (query === undefined) return;
      let [at, id] = [from, ''];
      for (;;) {
        const rows = await query
          .where(sql<boolean>`(u.at, u.id) > (${at}, ${id})`)
          .where('u.at', '<', to)
          .orderBy('u.at')
          .orderBy('u.id')
          .limit(exportRows)
          .execute();
        if (rows.length > 0) yield await toRequests(db, rows);
        const last = rows.at(-1);
        if (last === undefined || rows.length < exportRows) return;
        [at, id] = [last.at, last.id];
      }
    },
  };
}

/** Undefined if no request can match. */
async function select(
  db: Database,
  accountId: string,
  { model, key, status, from }: RequestFilter,
) {
  const raw = toRawTx(db);
  // Read first, so that the database plans with them: a rare model is found by another index than a common one.
  const names = [accountId, model, key].filter((name) => name !== undefined);
  const refs = await findNames(raw, names);
  if (names.some((name) => !refs.has(name))) return undefined;
  const refOf = (name: string) => refs.get(name)?.ref as number;
  let query = db
    .selectFrom(() => requestsBy(raw, { model, key, status }))
    .selectAll('u')
    .where('u.account_ref', '=', refOf(accountId));
  if (model !== undefined) query = query.where('u.model_ref', '=', refOf(model));
  if (key !== undefined) query = query.where('u.key_ref', '=', refOf(key));
  if (status !== undefined) query = query.where('u.status', '=', status);
  if (from !== undefined) query = query.where('u.at', '>=', from);
  // Repeats the condition of the partial index, so that the database uses it.
  if (status !== undefined && status !== 'done') {
    query = query.where(sql<boolean>`u.status <> 'done'`);
  }
  return query;
}

async function toRequests(
  db: Database,
  stored: readonly StoredUsageRow[],
): Promise<UsageRequest[]> {
  if (stored.length === 0) return [];
  const rows = await toRequestRows(toRawTx(db), stored);
  const ids = ['', ...new Set(rows.flatMap(({ key_id, user_id }) => key_id ?? user_id ?? []))];
  const names = await db
    .selectFrom('api_keys')
    .select(['id', 'label as name'])
    .where('id', 'in', ids)
    .unionAll(db.selectFrom('users').select(['id', 'email as name']).where('id', 'in', ids))
    .execute();
  const nameOf = new Map(names.map(({ id, name }) => [id, name]));
  return rows.map((row) => toRequest(row, nameOf));
}

async function findTime(db: Database, accountId: string, id: string): Promise<number | undefined> {
  const query = await select(db, accountId, {});
  const newest = query
    ?.clearSelect()
    .select(['u.at', 'u.id'])
    .orderBy('u.at', 'desc')
    .orderBy('u.id', 'desc')
    .limit(searchedRows)
    .as('newest');
  if (newest === undefined) return undefined;
  const row = await db.selectFrom(newest).select('at').where('id', '=', id).executeTakeFirst();
  return row?.at;
}

/**
 * SQLite has no statistics and prefers the order of the whole table, so it would read all of it for a rare model. The
 * index is therefore named. Each ends with the time; only requests of the same millisecond are sorted.
 */
function requestsBy({ isPostgres }: RawTx, { model, key, status }: RequestFilter) {
  const index =
    key !== undefined
      ? 'by_key'
      : model !== undefined
        ? 'by_model'
        : status !== undefined && status !== 'done'
          ? 'by_status'
          : null;
  const hint =
    index === null || isPostgres ? sql`u` : sql`u indexed by ${sql.ref(`usage_requests_${index}`)}`;
  return sql<StoredUsageRow>`usage_requests`.as<'u'>(hint);
}

/** Names of keys and people, by their ids. */
const toRequest = (row: UsageRequestRow, nameOf: ReadonlyMap<string, string>): UsageRequest => ({
  id: row.id,
  at: new Date(row.at).toISOString(),
  operation: row.operation,
  model: row.model,
  served_model: row.served_model,
  backend: row.backend === '' ? null : row.backend,
  key_id: row.key_id,
  key_label: nameOf.get(row.key_id ?? '') ?? null,
  user_email: nameOf.get(row.user_id ?? '') ?? null,
  status: row.status,
  code: row.code,
  prompt_tokens: row.prompt_tokens,
  completion_tokens: row.completion_tokens,
  cached_tokens: row.cached_tokens,
  first_token_ms: row.first_token_ms,
  duration_ms: row.duration_ms,
  cost: toDollars(row.cost_nano),
  reserved: row.reserved === 1,
});
