// Joining, signing in, and changing and resetting passwords. Also creates the installation's only account on the
// first start.

import { type Actor, type Audit, system } from '#accounts/audit/audit.ts';
import { type LimitSet, toColumns, unlimited } from '#accounts/limits/limit-set.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { UserRow } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { conflict, invalidBody, Refusal, rateLimited } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { toNetwork } from '#lib/network/client-network.ts';
import { hashPassword, newToken, type PasswordCost, verifyPassword } from '#lib/secrets/secrets.ts';
import { toAddress, toSpellings } from '#lib/text/email.ts';
import type { Devices } from './devices.ts';
import type { Invitations } from './invitations.ts';
import type { PasswordResets } from './password-resets.ts';
import type { Sessions, StartedSession, Visitor } from './sessions.ts';
import type { Attempt, Throttle } from './throttle.ts';

export interface SignedIn extends StartedSession {
  /** Token by which the browser or CLI is recognised at its next sign-in. */
  device: string;
}

interface SignInParts {
  audit: Audit;
  sessions: Sessions;
  devices: Devices;
  throttle: Throttle;
  invitations: Invitations;
  passwordResets: PasswordResets;
}

interface SignInOptions {
  loginAttempts: number;
  accountLimits?: LimitSet;
  /** The standard cost if undefined. */
  passwordCost?: PasswordCost | undefined;
}

/** Fixed, so that replicas that start at once on a new database create one account rather than several. */
const firstAccountId = '00000000000000000000000000000001';

/** Maximum attempts per network address in 15 minutes. A link is used once, so few people need a second attempt. */
const joinAttempts = 30;

const wrongLogin = () =>
  new Refusal('invalid_credentials', 'The email address or the password is wrong.');

const wrongPassword = () => invalidBody('The current password is wrong.', 'current_password');

const tooManySignIns = (waitMs: number) =>
  rateLimited(
    'Too many sign-in attempts. Try again later, or in a browser that you have signed in with before.',
    waitMs,
  );

export class SignIn {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #parts: SignInParts;
  readonly #options: SignInOptions;
  /** Verified if no such user exists, so that the response takes as long as for a wrong password. */
  #decoy: Promise<string> | undefined;

  constructor(db: Database, clock: Clock, parts: SignInParts, options: SignInOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#parts = parts;
    this.#options = options;
  }

  #hash(password: string): Promise<string> {
    return hashPassword(password, this.#options.passwordCost);
  }

  /** Returns the account of this installation. `created` is true if this call created it. */
  async ensureAccount(): Promise<{ id: string; created: boolean }> {
    return this.#db.transaction().execute(async (tx) => {
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto('accounts')
        .values({
          id: firstAccountId,
          name: 'Default',
          created_at: this.#clock.now(),
          ...toColumns(this.#options.accountLimits ?? unlimited),
        })
        .onConflict((onConflict) => onConflict.column('id').doNothing())
        .executeTakeFirst();
      const created = numInsertedOrUpdatedRows === 1n;
      const actor = { ...system, accountId: firstAccountId };
      const entry = { action: 'account.created' as const, resourceId: firstAccountId };
      if (created) await this.#parts.audit.record(tx, actor, entry);
      return { id: firstAccountId, created };
    });
  }

  /** Uses up an invitation: creates a user, a membership and a session. */
  async join(token: string, email: string, password: string, visitor: Visitor): Promise<SignedIn> {
    checkPassword(password);
    await this.#attemptLink(visitor);
    // Hashing costs memory and time, so the link is checked first.
    await this.#parts.invitations.get(token);
    const passwordHash = await this.#hash(password);
    return this.#db.transaction().execute(async (tx) => {
      const invitation = await this.#parts.invitations.take(tx, token);
      const user: UserRow = {
        id: newId(),
        email: toAddress(email),
        password_hash: passwordHash,
        created_at: this.#clock.now(),
      };
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto('users')
        .values(user)
        .onConflict((onConflict) => onConflict.column('email').doNothing())
        .executeTakeFirst();
      if (numInsertedOrUpdatedRows === 0n) throw conflict('This email address is taken.', 'email');
      const membership = {
        account_id: invitation.account_id,
        user_id: user.id,
        role: invitation.role,
        created_at: this.#clock.now(),
      };
      await tx.insertInto('memberships').values(membership).execute();
      const actor = toActor(visitor, invitation.account_id, user.id);
      await this.#parts.audit.record(tx, actor, {
        action: 'user.joined',
        resourceId: user.id,
        details: { email: user.email, role: invitation.role },
      });
      return this.#start(tx, { userId: user.id, accountId: invitation.account_id }, visitor);
    });
  }

  async #attemptLink(visitor: Visitor): Promise<void> {
    const subject = toNetwork(visitor.address);
    const { waitMs } = await this.#parts.throttle.attempt({
      kind: 'join-from',
      subject,
      limit: joinAttempts,
    });
    if (waitMs > 0) throw rateLimited('Too many attempts with links. Try again later.', waitMs);
  }

  async #start(tx: Tx, who: { userId: string; accountId: string }, visitor: Visitor) {
    const session = await this.#parts.sessions.start(tx, who, visitor);
    return {
      ...session,
      device: await this.#parts.devices.remember(tx, who.userId, visitor.device),
    };
  }

  async login(email: string, password: string, visitor: Visitor): Promise<SignedIn> {
    const address = toAddress(email);
    const attempts = await this.#toAttempts(address, visitor);
    for (const attempt of attempts) {
      const { waitMs, isFirst } = await this.#parts.throttle.attempt(attempt);
      if (waitMs === 0) continue;
      const entry = { action: 'user.login_throttled' as const, details: { email: address } };
      // Logged once per window, so that attempts can't fill the disk with audit entries.
      if (isFirst) {
        await this.#parts.audit.record(
          this.#db,
          toActor(visitor, await findAccount(this.#db, address), null),
          entry,
        );
      }
      throw tooManySignIns(waitMs);
    }
    const user = await this.#db
      .selectFrom('users')
      .innerJoin('memberships', 'memberships.user_id', 'users.id')
      .selectAll('users')
      .select('memberships.account_id')
      .where('users.email', 'in', toSpellings(email))
      .executeTakeFirst();
    this.#decoy ??= this.#hash(newToken());
    const right = await verifyPassword(password, user?.password_hash ?? (await this.#decoy));
    const actor = toActor(visitor, user?.account_id ?? null, null);
    const details = { email: address };
    if (user === undefined || !right) {
      await this.#parts.audit.record(this.#db, actor, { action: 'user.login_failed', details });
      throw wrongLogin();
    }
    for (const attempt of attempts) await this.#parts.throttle.reset(attempt);
    return this.#db.transaction().execute(async (tx) => {
      if (!(await isStillPassword(tx, user))) throw wrongLogin();
      const entry = { action: 'user.login_succeeded' as const, resourceId: user.id, details };
      await this.#parts.audit.record(tx, toActor(visitor, user.account_id, user.id), entry);
      return this.#start(tx, { userId: user.id, accountId: user.account_id }, visitor);
    });
  }

  /**
   * What a sign-in counts against. Strangers share the attempts of a user, so that many addresses get few guesses.
   * A device that has signed in as the user has attempts of its own, which strangers can't use up.
   */
  async #toAttempts(email: string, { address, device }: Visitor): Promise<Attempt[]> {
    const limit = this.#options.loginAttempts;
    if (device !== undefined && (await this.#parts.devices.isKnown(device, email))) {
      return [{ kind: 'login-device', subject: device, limit }];
    }
    const network = toNetwork(address);
    return [
      { kind: 'login-from', subject: network, limit: limit * 5 },
      { kind: 'login-as-from', subject: `${network} ${email}`, limit },
      { kind: 'login-as', subject: email, limit: limit * 10 },
    ];
  }

  /** Uses up a reset link: sets the password, ends the person's sessions and starts one. */
  async reset(token: string, password: string, visitor: Visitor): Promise<SignedIn> {
    checkPassword(password);
    await this.#attemptLink(visitor);
    // Hashing costs memory and time, so the link is checked first.
    await this.#parts.passwordResets.get(token);
    const passwordHash = await this.#hash(password);
    const signedIn = await this.#db.transaction().execute(async (tx) => {
      const { userId, accountId, email } = await this.#parts.passwordResets.take(tx, token);
      await this.#setPassword(tx, userId, passwordHash, null);
      await this.#parts.audit.record(tx, toActor(visitor, accountId, userId), {
        action: 'user.password_reset',
        resourceId: userId,
        details: { email },
      });
      return this.#start(tx, { userId, accountId }, visitor);
    });
    this.#parts.sessions.forget();
    return signedIn;
  }

  /** Returns a new token for the device that the person is using. */
  async changePassword(
    principal: SessionPrincipal,
    current: string,
    next: string,
  ): Promise<{ device: string }> {
    checkPassword(next, 'new_password');
    const attempt: Attempt = {
      kind: 'password',
      subject: principal.userId,
      limit: this.#options.loginAttempts,
    };
    const { waitMs } = await this.#parts.throttle.attempt(attempt);
    if (waitMs > 0) throw rateLimited('Too many attempts. Try again later.', waitMs);
    const user = await this.#db
      .selectFrom('users')
      .selectAll()
      .where('id', '=', principal.userId)
      .executeTakeFirstOrThrow();
    if (!(await verifyPassword(current, user.password_hash))) {
      await this.#parts.audit.record(this.#db, principal, {
        action: 'user.password_change_failed',
      });
      throw wrongPassword();
    }
    await this.#parts.throttle.reset(attempt);
    const passwordHash = await this.#hash(next);
    const device = await this.#db.transaction().execute(async (tx) => {
      if (!(await isStillPassword(tx, user))) throw wrongPassword();
      await this.#setPassword(tx, user.id, passwordHash, principal.sessionId);
      await this.#parts.audit.record(tx, principal, {
        action: 'user.password_changed',
        resourceId: user.id,
      });
      return this.#parts.devices.remember(tx, user.id, undefined);
    });
    this.#parts.sessions.forget();
    return { device };
  }

  /** Revokes what the old password gave access to: sessions except `keepId`, known devices and reset links. */
  async #setPassword(tx: Tx, userId: string, hash: string, keepId: string | null): Promise<void> {
    const { sessions, devices, passwordResets } = this.#parts;
    await tx.updateTable('users').set({ password_hash: hash }).where('id', '=', userId).execute();
    await sessions.endOthers(tx, userId, keepId);
    await devices.forget(tx, userId);
    await passwordResets.revoke(tx, userId);
  }
}

/**
 * Tells whether the password that was verified is still the user's: verifying takes long, and another may be set
 * meanwhile. A write that changes nothing locks the row until the transaction ends.
 */
async function isStillPassword(tx: Tx, { id, password_hash }: UserRow): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('users')
    .set({ password_hash })
    .where('id', '=', id)
    .where('password_hash', '=', password_hash)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

async function findAccount(db: Database, email: string): Promise<string | null> {
  const row = await db
    .selectFrom('users')
    .innerJoin('memberships', 'memberships.user_id', 'users.id')
    .select('memberships.account_id')
    .where('users.email', '=', email)
    .executeTakeFirst();
  return row?.account_id ?? null;
}

const toActor = (visitor: Visitor, accountId: string | null, userId: string | null): Actor => ({
  kind: 'visitor',
  accountId,
  userId,
  address: visitor.address,
});

function checkPassword(password: string, param = 'password'): void {
  if (password.length < 10) {
    throw invalidBody('The password must have at least 10 characters.', param);
  }
}
