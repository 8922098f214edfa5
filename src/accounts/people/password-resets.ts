// One-time links that set a new password. An operator creates one on the server, for a person who can't sign in. A
// user has at most one: a new link replaces the last.

import { type Audit, system } from '#accounts/audit/audit.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { deadLink } from '#lib/errors.ts';
import { hashToken, newToken } from '#lib/secrets/secrets.ts';
import { toSpellings } from '#lib/text/email.ts';

export interface PasswordResets {
  /** Null if no user has the email address. */
  create(email: string): Promise<{ token: string; expiresAt: number } | null>;
  /** Finds the user of a link, for the page that shows it. */
  get(token: string): Promise<{ email: string }>;
  /** Uses the link up. */
  take(tx: Tx, token: string): Promise<{ userId: string; accountId: string; email: string }>;
  /** Deletes the user's open link, if there is one. */
  revoke(tx: Tx, userId: string): Promise<void>;
}

const lifetimeMs = 3_600_000;

export function createPasswordResets(db: Database, clock: Clock, audit: Audit): PasswordResets {
  const usersOf = (from: Database | Tx) =>
    from
      .selectFrom('users')
      .innerJoin('memberships', 'memberships.user_id', 'users.id')
      .select(['users.id', 'users.email', 'memberships.account_id']);

  function create(email: string) {
    return db.transaction().execute(async (tx) => {
      const user = await usersOf(tx).where('email', 'in', toSpellings(email)).executeTakeFirst();
      if (user === undefined) return null;
      const token = newToken();
      const link = { token_hash: hashToken(token), expires_at: clock.now() + lifetimeMs };
      await tx
        .insertInto('password_resets')
        .values({ user_id: user.id, ...link })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet(link))
        .execute();
      await audit.record(
        tx,
        { ...system, accountId: user.account_id },
        {
          action: 'user.password_reset_created',
          resourceId: user.id,
          details: { email: user.email },
        },
      );
      return { token, expiresAt: link.expires_at };
    });
  }

  async function get(token: string) {
    const row = await db
      .selectFrom('password_resets')
      .innerJoin('users', 'users.id', 'password_resets.user_id')
      .select('users.email')
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', clock.now())
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    return row;
  }

  async function take(tx: Tx, token: string) {
    const row = await tx
      .deleteFrom('password_resets')
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', clock.now())
      .returning('user_id')
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    const user = await usersOf(tx).where('users.id', '=', row.user_id).executeTakeFirstOrThrow();
    return { userId: user.id, accountId: user.account_id, email: user.email };
  }

  async function revoke(tx: Tx, userId: string) {
    await tx.deleteFrom('password_resets').where('user_id', '=', userId).execute();
  }

  return { create, get, take, revoke };
}
