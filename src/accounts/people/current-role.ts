// Checks a person's role in the transaction that makes a change. A session is cached for a second,
// so the person may have been removed by another server.

import { checkRole, type Role, type SessionPrincipal } from '#accounts/principal.ts';
import type { Tx } from '#db/tables/tables.ts';
import { noCredentials } from '#lib/errors.ts';

/** Must be called with the account locked. Throws if the person no longer has one of the roles. */
export async function requireCurrentRole(
  tx: Tx,
  { accountId, userId }: SessionPrincipal,
  ...allowed: Role[]
): Promise<void> {
  const row = await tx
    .selectFrom('memberships')
    .select('role')
    .where('account_id', '=', accountId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (row === undefined) throw noCredentials();
  checkRole(row.role as Role, allowed);
}
