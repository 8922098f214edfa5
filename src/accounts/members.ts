// The people in an account and their roles.

import { lockAccount } from '#db/lock-account.ts';
import type { Database, Tx } from '#db/tables.ts';
import { forbidden, notFound } from '#lib/errors.ts';
import type { Audit } from './audit.ts';
import type { Role, SessionPrincipal } from './principal.ts';
import type { Sessions } from './sessions.ts';

export interface Member {
  userId: string;
  email: string;
  role: Role;
  joinedAt: number;
}

export interface Members {
  list(accountId: string): Promise<Member[]>;
  setRole(principal: SessionPrincipal, userId: string, role: Role): Promise<void>;
  /** Also ends the member's sessions. API keys the member created stay: they belong to the account. */
  remove(principal: SessionPrincipal, userId: string): Promise<void>;
}

export function createMembers(db: Database, audit: Audit, sessions: Sessions): Members {
  async function list(accountId: string) {
    const rows = await db
      .selectFrom('memberships')
      .innerJoin('users', 'users.id', 'memberships.user_id')
      .select(['users.id', 'users.email', 'memberships.role', 'memberships.created_at'])
      .where('memberships.account_id', '=', accountId)
      .orderBy('memberships.created_at')
      .execute();
    return rows.map((row) => ({
      userId: row.id,
      email: row.email,
      role: row.role as Role,
      joinedAt: row.created_at,
    }));
  }

  async function setRole(principal: SessionPrincipal, userId: string, role: Role) {
    await db.transaction().execute(async (tx) => {
      const before = await takeMember(tx, principal, userId);
      if (before === 'owner' && role !== 'owner') await keepAnOwner(tx, principal.accountId);
      await tx
        .updateTable('memberships')
        .set({ role })
        .where('account_id', '=', principal.accountId)
        .where('user_id', '=', userId)
        .execute();
      await audit.record(tx, principal, {
        action: 'member.role_changed',
        resourceId: userId,
        details: { from: before, to: role },
      });
    });
    sessions.forget();
  }

  async function remove(principal: SessionPrincipal, userId: string) {
    await db.transaction().execute(async (tx) => {
      const role = await takeMember(tx, principal, userId);
      if (role === 'owner') await keepAnOwner(tx, principal.accountId);
      await sessions.endOthers(tx, userId, null);
      await tx.deleteFrom('devices').where('user_id', '=', userId).execute();
      await tx.deleteFrom('password_resets').where('user_id', '=', userId).execute();
      await tx
        .deleteFrom('memberships')
        .where('account_id', '=', principal.accountId)
        .where('user_id', '=', userId)
        .execute();
      const user = await tx
        .deleteFrom('users')
        .where('id', '=', userId)
        .returning('email')
        .executeTakeFirstOrThrow();
      await audit.record(tx, principal, {
        action: 'member.removed',
        resourceId: userId,
        details: { email: user.email, role },
      });
    });
    sessions.forget();
  }

  /** Returns the member's role with the account locked, so that two owners can't remove each other at once. */
  async function takeMember(tx: Tx, principal: SessionPrincipal, userId: string): Promise<Role> {
    await lockAccount(tx, principal.accountId);
    const row = await tx
      .selectFrom('memberships')
      .select('role')
      .where('account_id', '=', principal.accountId)
      .where('user_id', '=', userId)
      .executeTakeFirst();
    if (row === undefined) throw notFound('This member');
    return row.role as Role;
  }

  async function keepAnOwner(tx: Tx, accountId: string): Promise<void> {
    const { count } = await tx
      .selectFrom('memberships')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('account_id', '=', accountId)
      .where('role', '=', 'owner')
      .executeTakeFirstOrThrow();
    if (count < 2) throw forbidden('The account needs an owner. Make somebody else one first.');
  }

  return { list, setRole, remove };
}
