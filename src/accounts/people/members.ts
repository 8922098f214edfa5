// The people in an account and their roles.

import { sql } from 'kysely';
import type { Audit } from '#accounts/audit/audit.ts';
import type { ApiKeys } from '#accounts/keys/api-keys.ts';
import { newestFirst, type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import { type Role, roles, type SessionPrincipal } from '#accounts/principal.ts';
import type { LostSsh, Removal } from '#accounts/schema.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import { forbidden, notFound } from '#lib/errors.ts';
import { requireCurrentRole } from './current-role.ts';
import type { Sessions } from './sessions.ts';

export interface MemberRow {
  id: string;
  email: string;
  role: string;
  created_at: number;
  /** Number of API keys that the member created and that are not revoked. */
  api_keys: number;
}

export interface AffectedKey {
  id: string;
  label: string;
}

/** The SSH keys of single people, which the cloud has. */
export interface PersonalSsh {
  find(accountId: string, userId: string): Promise<LostSsh>;
  /** Deletes the person's keys; all machines of the account refuse them soon after `ended`. */
  end(tx: Tx, principal: SessionPrincipal, userId: string): Promise<LostSsh>;
  /** Call it after the commit. */
  ended(): void;
}

export interface Members {
  list(accountId: string, page: PageOptions): Promise<Page<MemberRow>>;
  /** Returns the member's API keys that can be used only now, or no longer: none has more rights than its creator. */
  setRole(principal: SessionPrincipal, userId: string, role: Role): Promise<AffectedKey[]>;
  /**
   * Owners remove anyone, others only themselves, and with their keys: a person who has left still
   * knows them. Also ends the member's sessions, and ssh with the member's keys. API keys that are
   * kept become those of the principal, whose role they then have.
   */
  remove(principal: SessionPrincipal, userId: string, keys: 'revoke' | 'keep'): Promise<Removal>;
  /** What `remove` would end on machines. */
  findSsh(accountId: string, userId: string): Promise<LostSsh>;
}

interface Context {
  readonly audit: Audit;
  readonly sessions: Sessions;
  readonly apiKeys: ApiKeys;
  readonly ssh: PersonalSsh;
}

export function createMembers(
  db: Database,
  audit: Audit,
  { sessions, apiKeys, ssh }: Omit<Context, 'audit'>,
): Members {
  const context: Context = { audit, sessions, apiKeys, ssh };

  async function setRole(principal: SessionPrincipal, userId: string, role: Role) {
    const affected = await db.transaction().execute(async (tx) => {
      const before = await takeMember(tx, principal, userId, ['owner']);
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
      return (before === 'viewer') === (role === 'viewer') ? [] : keysOf(tx, principal, userId);
    });
    sessions.forget();
    apiKeys.forget();
    return affected;
  }

  async function remove(
    principal: SessionPrincipal,
    userId: string,
    keys: 'revoke' | 'keep',
  ): Promise<Removal> {
    const removal = await db
      .transaction()
      .execute((tx) => deleteMember(context, tx, principal, { userId, keys }));
    sessions.forget();
    apiKeys.forget();
    ssh.ended();
    return removal;
  }

  return {
    list: (accountId, page) => listMembers(db, accountId, page),
    setRole,
    remove,
    async findSsh(accountId, userId) {
      await getRole(db, accountId, userId);
      return ssh.find(accountId, userId);
    },
  };
}

async function deleteMember(
  { audit, sessions, apiKeys, ssh }: Context,
  tx: Tx,
  principal: SessionPrincipal,
  { userId, keys }: { userId: string; keys: 'revoke' | 'keep' },
): Promise<Removal> {
  const isLeaving = userId === principal.userId && keys === 'revoke';
  const allowed = isLeaving ? roles : (['owner'] as const);
  const role = await takeMember(tx, principal, userId, allowed);
  if (role === 'owner') await keepAnOwner(tx, principal.accountId);
  await sessions.endOthers(tx, userId, null);
  for (const table of ['devices', 'password_resets', 'conversations', 'presets'] as const)
    await tx.deleteFrom(table).where('user_id', '=', userId).execute();
  const lost = await ssh.end(tx, principal, userId);
  const count = keys === 'revoke' ? await apiKeys.revokeAllOf(tx, principal, userId) : 0;
  if (keys === 'keep' && userId !== principal.userId) await takeOverKeys(tx, principal, userId);
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
    details: { email: user.email, role, revoked_keys: count },
  });
  return { revoked_keys: count, ...lost };
}

const keysOf = (tx: Tx, { accountId }: SessionPrincipal, userId: string) =>
  tx
    .selectFrom('api_keys')
    .select(['id', 'label'])
    .where('account_id', '=', accountId)
    .where('created_by', '=', userId)
    .where('revoked_at', 'is', null)
    .orderBy('created_at')
    .execute();

async function takeOverKeys(tx: Tx, principal: SessionPrincipal, userId: string): Promise<void> {
  await tx
    .updateTable('api_keys')
    .set({ created_by: principal.userId })
    .where('account_id', '=', principal.accountId)
    .where('created_by', '=', userId)
    .execute();
}

function listMembers(db: Database, accountId: string, page: PageOptions) {
  const keys = db
    .selectFrom('api_keys')
    .select(({ fn }) => ['created_by', fn.countAll<number>().as('count')])
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .groupBy('created_by')
    .as('keys');
  const query = db
    .selectFrom('memberships as m')
    .innerJoin('users', 'users.id', 'm.user_id')
    .leftJoin(keys, 'keys.created_by', 'm.user_id')
    .select(['users.id', 'users.email', 'm.role', 'm.created_at'])
    .select(sql<number>`coalesce(keys.count, 0)`.as('api_keys'))
    .where('m.account_id', '=', accountId);
  return readPage(query, page, { ...newestFirst, at: 'm.created_at', id: 'users.id' });
}

/** Returns the member's role with the account locked, so that two owners can't remove each other at once. */
async function takeMember(
  tx: Tx,
  principal: SessionPrincipal,
  userId: string,
  allowed: readonly Role[],
): Promise<Role> {
  await lockAccount(tx, principal.accountId);
  await requireCurrentRole(tx, principal, ...allowed);
  return getRole(tx, principal.accountId, userId);
}

async function getRole(connection: Database | Tx, accountId: string, userId: string) {
  const row = await connection
    .selectFrom('memberships')
    .select('role')
    .where('account_id', '=', accountId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (row === undefined) throw notFound('This member');
  return row.role as Role;
}

async function keepAnOwner(tx: Tx, accountId: string): Promise<void> {
  const members = tx.selectFrom('memberships').where('account_id', '=', accountId);
  if ((await countRows(members.where('role', '=', 'owner'))) < 2)
    throw forbidden('The account needs an owner. Make another member an owner first.');
}
