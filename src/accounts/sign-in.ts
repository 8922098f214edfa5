// Joining, signing in and changing passwords. Also creates the installation's only account on the first start.

import { type LimitSet, toColumns, unlimited } from '#accounts/limits/limit-set.ts';
import type { Database, UserRow } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { conflict, invalidBody, Refusal, rateLimited } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { hashPassword, hashToken, newToken, verifyPassword } from '#lib/secrets/secrets.ts';
import { type Actor, type Audit, system } from './audit.ts';
import type { Invitations } from './invitations.ts';
import type { SessionPrincipal } from './principal.ts';
import type { Sessions, StartedSession, Visitor } from './sessions.ts';
import type { Throttle } from './throttle.ts';

export interface SignIn {
  /** Returns the account of this installation. `created` is true if this call created it. */
  ensureAccount(): Promise<{ id: string; created: boolean }>;
  /** Uses up an invitation: creates a user, a membership and a session. */
  join(token: string, email: string, password: string, visitor: Visitor): Promise<StartedSession>;
  login(email: string, password: string, visitor: Visitor): Promise<StartedSession>;
  /** Also ends the person's other sessions. */
  changePassword(principal: SessionPrincipal, current: string, next: string): Promise<void>;
}

/** Fixed, so that replicas that start at once on a new database create one account rather than several. */
const firstAccountId = '00000000000000000000000000000001';

/** Maximum attempts per network address in 15 minutes. A link is used once, so few people need a second attempt. */
const joinAttempts = 30;

const wrongLogin = () =>
  new Refusal('invalid_credentials', 'The e-mail address or the password is wrong.');

export function createSignIn(
  db: Database,
  clock: Clock,
  parts: { audit: Audit; sessions: Sessions; throttle: Throttle; invitations: Invitations },
  options: { loginAttempts: number; accountLimits?: LimitSet },
): SignIn {
  const { audit, sessions, throttle, invitations } = parts;
  /** Verified if no such user exists, so that the response takes as long as for a wrong password. */
  let decoy: Promise<string> | undefined;

  async function ensureAccount() {
    return db.transaction().execute(async (tx) => {
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto('accounts')
        .values({
          id: firstAccountId,
          name: 'Default',
          created_at: clock.now(),
          ...toColumns(options.accountLimits ?? unlimited),
        })
        .onConflict((onConflict) => onConflict.column('id').doNothing())
        .executeTakeFirst();
      const created = numInsertedOrUpdatedRows === 1n;
      const actor = { ...system, accountId: firstAccountId };
      const entry = { action: 'account.created' as const, resourceId: firstAccountId };
      if (created) await audit.record(tx, actor, entry);
      return { id: firstAccountId, created };
    });
  }

  async function join(token: string, email: string, password: string, visitor: Visitor) {
    checkPassword(password);
    const { waitMs } = await throttle.attempt(`join-from:${visitor.address}`, joinAttempts);
    if (waitMs > 0) throw rateLimited('Too many attempts to join. Try again later.', waitMs);
    // Hashing costs memory and time, so the link is checked first.
    await invitations.get(token);
    const passwordHash = await hashPassword(password);
    return db.transaction().execute(async (tx) => {
      const invitation = await invitations.take(tx, token);
      const user: UserRow = {
        id: newId(),
        email: email.toLowerCase(),
        password_hash: passwordHash,
        created_at: clock.now(),
      };
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto('users')
        .values(user)
        .onConflict((onConflict) => onConflict.column('email').doNothing())
        .executeTakeFirst();
      if (numInsertedOrUpdatedRows === 0n) throw conflict('This e-mail address is taken.');
      const membership = {
        account_id: invitation.account_id,
        user_id: user.id,
        role: invitation.role,
        created_at: clock.now(),
      };
      await tx.insertInto('memberships').values(membership).execute();
      const actor = toActor(visitor, invitation.account_id, user.id);
      await audit.record(tx, actor, {
        action: 'user.joined',
        resourceId: user.id,
        details: { email: user.email, role: invitation.role },
      });
      return sessions.start(tx, { userId: user.id, accountId: invitation.account_id }, visitor);
    });
  }

  async function login(email: string, password: string, visitor: Visitor) {
    const address = email.toLowerCase();
    const keys = [`login-from:${visitor.address}`, `login-as:${hashToken(address)}`] as const;
    const perAddress = await throttle.attempt(keys[0], options.loginAttempts * 5);
    const perUser = await throttle.attempt(keys[1], options.loginAttempts);
    const waitMs = Math.max(perAddress.waitMs, perUser.waitMs);
    if (waitMs > 0) {
      const entry = { action: 'user.login_throttled' as const, details: { email: address } };
      // Logged once per window, so that attempts can't fill the disk with audit entries.
      if (perAddress.isFirst || perUser.isFirst) {
        await audit.record(db, toActor(visitor, await findAccount(address), null), entry);
      }
      throw rateLimited('Too many sign-in attempts. Try again later.', waitMs);
    }
    const user = await db
      .selectFrom('users')
      .innerJoin('memberships', 'memberships.user_id', 'users.id')
      .selectAll('users')
      .select('memberships.account_id')
      .where('users.email', '=', address)
      .executeTakeFirst();
    decoy ??= hashPassword(newToken());
    const right = await verifyPassword(password, user?.password_hash ?? (await decoy));
    const actor = toActor(visitor, user?.account_id ?? null, null);
    const details = { email: address };
    if (user === undefined || !right) {
      await audit.record(db, actor, { action: 'user.login_failed', details });
      throw wrongLogin();
    }
    for (const key of keys) await throttle.forgive(key);
    return db.transaction().execute(async (tx) => {
      const entry = { action: 'user.login_succeeded' as const, resourceId: user.id, details };
      await audit.record(tx, toActor(visitor, user.account_id, user.id), entry);
      return sessions.start(tx, { userId: user.id, accountId: user.account_id }, visitor);
    });
  }

  async function changePassword(principal: SessionPrincipal, current: string, next: string) {
    const key = `password:${principal.userId}`;
    const { waitMs } = await throttle.attempt(key, options.loginAttempts);
    if (waitMs > 0) throw rateLimited('Too many attempts. Try again later.', waitMs);
    checkPassword(next);
    const user = await db
      .selectFrom('users')
      .selectAll()
      .where('id', '=', principal.userId)
      .executeTakeFirstOrThrow();
    if (!(await verifyPassword(current, user.password_hash))) {
      await audit.record(db, principal, { action: 'user.password_change_failed' });
      throw invalidBody('The current password is wrong.', 'current_password');
    }
    await throttle.forgive(key);
    const passwordHash = await hashPassword(next);
    await db.transaction().execute(async (tx) => {
      await tx
        .updateTable('users')
        .set({ password_hash: passwordHash })
        .where('id', '=', user.id)
        .execute();
      await sessions.endOthers(tx, user.id, principal.sessionId);
      await audit.record(tx, principal, { action: 'user.password_changed', resourceId: user.id });
    });
    sessions.forget();
  }

  async function findAccount(email: string): Promise<string | null> {
    const row = await db
      .selectFrom('users')
      .innerJoin('memberships', 'memberships.user_id', 'users.id')
      .select('memberships.account_id')
      .where('users.email', '=', email)
      .executeTakeFirst();
    return row?.account_id ?? null;
  }

  return { ensureAccount, join, login, changePassword };
}

const toActor = (visitor: Visitor, accountId: string | null, userId: string | null): Actor => ({
  kind: 'visitor',
  accountId,
  userId,
  address: visitor.address,
});

function checkPassword(password: string): void {
  if (password.length < 10) {
    throw invalidBody('The password must have at least 10 characters.', 'password');
  }
}
