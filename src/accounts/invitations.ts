// Invitations: links that each let one person join. The set-up link of a new server is an invitation without a
// sender.

import { lockAccount } from '#db/lock-account.ts';
import type { Database, InvitationRow, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { hashToken, newToken } from '#lib/secrets/secrets.ts';
import { type Audit, system } from './audit.ts';
import type { Role, SessionPrincipal } from './principal.ts';

export interface Invitations {
  /** Creates another set-up token if the account has no members yet; returns null if it has. */
  renewSetup(accountId: string): Promise<string | null>;
  create(principal: SessionPrincipal, role: Role): Promise<{ row: InvitationRow; token: string }>;
  list(accountId: string): Promise<InvitationRow[]>;
  revoke(principal: SessionPrincipal, id: string): Promise<void>;
  /** Describes an invitation, for the page that shows it. */
  get(token: string): Promise<{ role: Role; accountName: string; setup: boolean }>;
  /** Uses the invitation up. */
  take(tx: Tx, token: string): Promise<InvitationRow>;
}

const setupDays = 2;
const deadLink = () => notFound('This link was used, has expired or never was: it');

export function createInvitations(
  db: Database,
  clock: Clock,
  audit: Audit,
  options: { invitationDays: number },
): Invitations {
  async function renewSetup(accountId: string) {
    return db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      const member = await tx
        .selectFrom('memberships')
        .select('user_id')
        .where('account_id', '=', accountId)
        .executeTakeFirst();
      if (member !== undefined) return null;
      await tx.deleteFrom('invitations').where('expires_at', '<=', clock.now()).execute();
      // Links from other replicas and earlier starts stay valid until one of them is used.
      const { row, token } = await add(tx, accountId, 'owner', null, setupDays);
      await audit.record(
        tx,
        { ...system, accountId },
        {
          action: 'invitation.created',
          resourceId: row.id,
          details: { role: row.role, setup: true },
        },
      );
      return token;
    });
  }

  async function add(tx: Tx, accountId: string, role: Role, by: string | null, days: number) {
    const token = newToken();
    const row: InvitationRow = {
      id: newId(),
      account_id: accountId,
      token_hash: hashToken(token),
      role,
      created_by: by,
      created_at: clock.now(),
      expires_at: clock.now() + days * 86_400_000,
    };
    await tx.insertInto('invitations').values(row).execute();
    return { row, token };
  }

  function create(principal: SessionPrincipal, role: Role) {
    return db.transaction().execute(async (tx) => {
      const { accountId, userId } = principal;
      const made = await add(tx, accountId, role, userId, options.invitationDays);
      const details = { role };
      await audit.record(tx, principal, {
        action: 'invitation.created',
        resourceId: made.row.id,
        details,
      });
      return made;
    });
  }

  function list(accountId: string) {
    return db
      .selectFrom('invitations')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('expires_at', '>', clock.now())
      .orderBy('created_at')
      .execute();
  }

  async function revoke(principal: SessionPrincipal, id: string) {
    await db.transaction().execute(async (tx) => {
      const { numDeletedRows } = await tx
        .deleteFrom('invitations')
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .executeTakeFirst();
      if (numDeletedRows === 0n) throw notFound('This invitation');
      await audit.record(tx, principal, { action: 'invitation.revoked', resourceId: id });
    });
  }

  async function get(token: string) {
    const row = await db
      .selectFrom('invitations')
      .innerJoin('accounts', 'accounts.id', 'invitations.account_id')
      .select(['invitations.role', 'invitations.created_by', 'accounts.name'])
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', clock.now())
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    return { role: row.role as Role, accountName: row.name, setup: row.created_by === null };
  }

  async function take(tx: Tx, token: string) {
    const row = await tx
      .deleteFrom('invitations')
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', clock.now())
      .returningAll()
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    if (row.created_by === null) {
      await tx
        .deleteFrom('invitations')
        .where('account_id', '=', row.account_id)
        .where('created_by', 'is', null)
        .execute();
    }
    return row;
  }

  return { renewSetup, create, list, revoke, get, take };
}
