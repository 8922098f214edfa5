// True if the caller of a row may no longer use the account: the API key was revoked or has expired, or the person was
// removed or is a viewer now. For work that goes on after the request that began it.

import { type RawBuilder, sql } from 'kysely';

/** `table` has the columns `account_id`, `key_id` and `user_id`. */
export function isCallerGone(table: 'batches' | 'response_runs', now: number): RawBuilder<boolean> {
  const row = sql.table(table);
  return sql<boolean>`(case when ${row}.key_id is null
    then not exists (select 1 from memberships where memberships.account_id = ${row}.account_id
      and memberships.user_id = ${row}.user_id and memberships.role <> 'viewer')
    else not exists (select 1 from api_keys where api_keys.id = ${row}.key_id
      and api_keys.revoked_at is null
      and (api_keys.expires_at is null or api_keys.expires_at > ${now})
      and not exists (select 1 from memberships where memberships.account_id = api_keys.account_id
        and memberships.user_id = api_keys.created_by and memberships.role = 'viewer')) end)`;
}
