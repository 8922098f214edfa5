// Invitations: links that each let one person join. The set-up link of a new server is an invitation without a
// sender.

import { sql } from 'kysely';
import { type Audit, system } from '#accounts/audit/audit.ts';
import { newestFirst, type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import type { Role, SessionPrincipal } from '#accounts/principal.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { InvitationRow } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { deadLink, notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { hashToken, newToken } from '#lib/secrets/secrets.ts';

const setupDays = 2;

export class Invitations {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #audit: Audit;
  readonly #days: number;

  constructor(db: Database, clock: Clock, audit: Audit, options: { invitationDays: number }) {
    this.#db = db;
    this.#clock = clock;
    this.#audit = audit;
    this.#days = options.invitationDays;
  }

  /** Creates another set-up token if the account has no members yet; returns null if it has. */
  async renewSetup(accountId: string): Promise<string | null> {
    return this.#db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      const member = await tx
        .selectFrom('memberships')
        .select('user_id')
        .where('account_id', '=', accountId)
        .executeTakeFirst();
      if (member !== undefined) return null;
      await tx.deleteFrom('invitations').where('expires_at', '<=', this.#clock.now()).execute();
      // Links from other replicas and earlier starts stay valid until one of them is used.
      const { row, token } = await this.#add(tx, accountId, 'owner', null, setupDays);
      const details = { role: row.role, setup: true };
      const event = { action: 'invitation.created', resourceId: row.id, details } as const;
      await this.#audit.record(tx, { ...system, accountId }, event);
      return token;
    });
  }

  async #add(tx: Tx, accountId: string, role: Role, by: string | null, days: number) {
    const token = newToken();
    const row: InvitationRow = {
      id: newId(),
      account_id: accountId,
      token_hash: hashToken(token),
      role,
      created_by: by,
      created_at: this.#clock.now(),
      expires_at: this.#clock.now() + days * 86_400_000,
    };
    await tx.insertInto('invitations').values(row).execute();
    return { row, token };
  }

  create(principal: SessionPrincipal, role: Role) {
    return this.#db.transaction().execute(async (tx) => {
      const { accountId, userId } = principal;
      const made = await this.#add(tx, accountId, role, userId, this.#days);
      const event = { action: 'invitation.created', resourceId: made.row.id } as const;
      await this.#audit.record(tx, principal, { ...event, details: { role } });
      return made;
    });
  }

  list(accountId: string, page: PageOptions): Promise<Page<InvitationRow>> {
    const query = this.#db
      .selectFrom('invitations')
      .selectAll()
      .where('account_id', '=', accountId)
      .where(isValid(this.#clock.now()));
    return readPage(query, page, newestFirst);
  }

  async revoke(principal: SessionPrincipal, id: string): Promise<void> {
    await this.#db.transaction().execute(async (tx) => {
      const { numDeletedRows } = await tx
        .deleteFrom('invitations')
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .executeTakeFirst();
      if (numDeletedRows === 0n) throw notFound('This invitation');
      await this.#audit.record(tx, principal, { action: 'invitation.revoked', resourceId: id });
    });
  }

  /** Describes an invitation, for the page that shows it. */
  async get(token: string) {
    const row = await this.#db
      .selectFrom('invitations')
      .innerJoin('accounts', 'accounts.id', 'invitations.account_id')
      .select(['invitations.role', 'invitations.created_by', 'accounts.name'])
      .where('token_hash', '=', hashToken(token))
      .where(isValid(this.#clock.now()))
      .executeTakeFirst();
    if (row === undefined) throw deadLink();
    return { role: row.role as Role, accountName: row.name, setup: row.created_by === null };
  }

  /** Uses the invitation up. */
  async take(tx: Tx, token: string): Promise<InvitationRow> {
    const row = await tx
      .deleteFrom('invitations')
      .where('token_hash', '=', hashToken(token))
      .where(isValid(this.#clock.now()))
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
}

/** An invitation ends with the rights of its sender. Otherwise a removed owner could return by a link sent earlier. */
const isValid = (now: number) => sql<boolean>`(invitations.expires_at > ${now}
  and (invitations.created_by is null or exists (select 1 from memberships
    where memberships.account_id = invitations.account_id
    and memberships.user_id = invitations.created_by and memberships.role = 'owner')))`;
