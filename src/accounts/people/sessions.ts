// Sessions of signed-in people. The cookie holds a random token and the row its hash. Like API keys, sessions are
// cached for one second after a lookup.

import type { Audit } from '#accounts/audit/audit.ts';
import { newestFirst, type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import type { Role, SessionPrincipal } from '#accounts/principal.ts';
import type { SessionRow } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { createLookupCache, type LookupCache } from '#lib/memory/caches.ts';
import { hashToken, newToken } from '#lib/secrets/secrets.ts';

export interface Visitor {
  address: string;
  userAgent: string;
  /** The token of a device that has signed in before, if the visitor sent one. */
  device?: string | undefined;
}

export interface StartedSession {
  token: string;
  expiresAt: number;
}

type CachedSession = Omit<SessionPrincipal, 'address'> & { expiresAt: number };

export class Sessions {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #audit: Audit;
  readonly #sessionMs: number;
  readonly #onEnded: () => void;
  readonly #found: LookupCache<CachedSession>;

  constructor(
    db: Database,
    clock: Clock,
    audit: Audit,
    options: { sessionDays: number; onEnded?: () => void },
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#audit = audit;
    this.#sessionMs = options.sessionDays * 86_400_000;
    this.#onEnded = options.onEnded ?? (() => {});
    this.#found = createLookupCache(clock, { maxEntries: 10_000, maxAgeMs: 1000 });
  }

  /** The returned value is the only copy of the token: the database stores its hash. */
  async start(
    tx: Tx,
    who: { userId: string; accountId: string },
    visitor: Visitor,
  ): Promise<StartedSession> {
    const token = newToken();
    const expiresAt = this.#clock.now() + this.#sessionMs;
    await tx
      .insertInto('sessions')
      .values({
        id: newId(),
        token_hash: hashToken(token),
        user_id: who.userId,
        account_id: who.accountId,
        address: visitor.address,
        user_agent: visitor.userAgent.slice(0, 256),
        created_at: this.#clock.now(),
        expires_at: expiresAt,
      })
      .execute();
    return { token, expiresAt };
  }

  async find(token: string, address: string): Promise<SessionPrincipal | undefined> {
    const hash = hashToken(token);
    const session = this.#found.get(hash) ?? (await this.#look(hash));
    if (session === undefined || session.expiresAt <= this.#clock.now()) return undefined;
    return { ...session, address };
  }

  async #look(hash: string) {
    const ticket = this.#found.ticket();
    const row = await this.#db
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .innerJoin('memberships', (join) =>
        join
          .onRef('memberships.user_id', '=', 'sessions.user_id')
          .onRef('memberships.account_id', '=', 'sessions.account_id'),
      )
      .select(['sessions.id', 'sessions.user_id', 'sessions.account_id', 'sessions.expires_at'])
      .select(['users.email', 'memberships.role'])
      .where('sessions.token_hash', '=', hash)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const session = {
      kind: 'session' as const,
      sessionId: row.id,
      userId: row.user_id,
      accountId: row.account_id,
      email: row.email,
      role: row.role as Role,
      expiresAt: row.expires_at,
    };
    this.#found.set(hash, session, ticket);
    return session;
  }

  list(userId: string, page: PageOptions): Promise<Page<SessionRow>> {
    const query = this.#db
      .selectFrom('sessions')
      .selectAll()
      .where('user_id', '=', userId)
      .where('expires_at', '>', this.#clock.now());
    return readPage(query, page, newestFirst);
  }

  async end(principal: SessionPrincipal, id: string): Promise<void> {
    await this.#db.transaction().execute(async (tx) => {
      const { numDeletedRows } = await tx
        .deleteFrom('sessions')
        .where('id', '=', id)
        .where('user_id', '=', principal.userId)
        .executeTakeFirst();
      if (numDeletedRows === 0n) throw notFound('This session');
      const action = id === principal.sessionId ? 'user.logged_out' : 'session.ended';
      await this.#audit.record(tx, principal, { action, resourceId: id });
    });
    this.forget();
  }

  /** Ends every session of the user except `keepId`. */
  async endOthers(tx: Tx, userId: string, keepId: string | null): Promise<void> {
    let query = tx.deleteFrom('sessions').where('user_id', '=', userId);
    if (keepId !== null) query = query.where('id', '!=', keepId);
    await query.execute();
  }

  /** Clears the cache after roles or sessions have changed. */
  forget(): void {
    this.#found.clear();
    this.#onEnded();
  }

  async sweep(): Promise<void> {
    await this.#db.deleteFrom('sessions').where('expires_at', '<=', this.#clock.now()).execute();
  }
}
