// Reads the API keys of an account with the people who created them: one key, or a page of them.

import { sql } from 'kysely';
import { newestFirst, type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import type { ApiKeyRow } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';

export interface ListedApiKey extends ApiKeyRow {
  /** Null for a key that the server created, and if the person is no longer a member. */
  creator_email: string | null;
}

export interface ApiKeyFilter extends PageOptions {
  /** Part of a label, in any case, or the beginning of an id. */
  search?: string | undefined;
}

/** Keys that are not revoked, newest first. */
export function listApiKeys(
  db: Database,
  accountId: string,
  { search, ...page }: ApiKeyFilter,
): Promise<Page<ListedApiKey>> {
  let query = keysOf(db, accountId);
  if (search !== undefined) {
    const literal = search.toLowerCase().replaceAll(/[\\%_]/g, '\\$&');
    const [prefix, pattern] = [`${literal}%`, `%${literal}%`];
    // SQLite's lower knows only ASCII: other letters are found as they are written.
    query = query.where(
      sql<boolean>`(k.id like ${prefix} escape '\\' or k.label = ${search} or lower(k.label) like ${pattern} escape '\\')`,
    );
  }
  return readPage(query, page, { ...newestFirst, at: 'k.created_at', id: 'k.id' });
}

/** Undefined if the account has no such key, or it is revoked. */
export const findListedApiKey = (
  db: Database | Tx,
  accountId: string,
  id: string,
): Promise<ListedApiKey | undefined> =>
  keysOf(db, accountId).where('k.id', '=', id).executeTakeFirst();

const keysOf = (db: Database | Tx, accountId: string) =>
  db
    .selectFrom('api_keys as k')
    .leftJoin('users as u', 'u.id', 'k.created_by')
    .selectAll('k')
    .select('u.email as creator_email')
    .where('k.account_id', '=', accountId)
    .where('k.revoked_at', 'is', null);
