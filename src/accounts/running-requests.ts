// Requests that are being served, with their callers. A request ends when its caller loses the
// right to it: the API key is revoked or has expired, the session ended, or the person was removed
// or became a viewer.

import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { isDatabaseUnavailable } from '#lib/errors.ts';
import { type Indexed, IndexedList, notListed } from '#lib/memory/indexed-list.ts';
import type { KeyPrincipal, Principal, SessionPrincipal } from './principal.ts';

/** Ids looked up in one query. */
const maxIds = 500;

export class RunningRequest implements Indexed {
  index = notListed;
  readonly principal: Principal;
  /** Ends the request. Called at most once. */
  readonly end: () => void;

  constructor(principal: Principal, end: () => void) {
    this.principal = principal;
    this.end = end;
  }
}

export class RunningRequests {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #running = new IndexedList<RunningRequest>();
  /** The check in progress, and whether something changed since it began. */
  #checking: Promise<void> | null = null;
  #isStale = false;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** The request must be removed when it ends by itself. */
  add(principal: Principal, end: () => void): RunningRequest {
    const request = new RunningRequest(principal, end);
    this.#running.add(request);
    return request;
  }

  remove(request: RunningRequest): void {
    this.#running.delete(request);
  }

  /**
   * Ends the requests whose callers have lost their right. Called every second, and at once after a
   * change on this server. In an outage of the database, requests go on.
   */
  check(): Promise<void> {
    this.#isStale = true;
    this.#checking ??= this.#checkAll().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async #checkAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const running = this.#running.list();
      if (running.length === 0) return;
      const known = await this.#findKnown(running.map(({ principal }) => principal)).catch(
        (error) => {
          if (!isDatabaseUnavailable(error)) throw error;
        },
      );
      if (known === undefined) return;
      for (const request of running) {
        if (request.index === notListed || known.has(idOf(request.principal))) continue;
        this.remove(request);
        request.end();
      }
    }
  }

  /** The ids of the keys and sessions that may still use the account. */
  async #findKnown(principals: readonly Principal[]): Promise<Set<string>> {
    const keys = principals.filter((one): one is KeyPrincipal => one.kind === 'key');
    const sessions = principals.filter((one): one is SessionPrincipal => one.kind === 'session');
    const known = new Set<string>();
    for (const ids of toParts(keys.map(idOf)))
      for (const { id } of await this.#selectKeys(ids)) known.add(id);
    for (const ids of toParts(sessions.map(idOf)))
      for (const { id } of await this.#selectSessions(ids)) known.add(id);
    return known;
  }

  #selectKeys(ids: readonly string[]) {
    const now = this.#clock.now();
    return this.#db
      .selectFrom('api_keys as k')
      .leftJoin('memberships as m', (join) =>
        join.onRef('m.user_id', '=', 'k.created_by').onRef('m.account_id', '=', 'k.account_id'),
      )
      .select('k.id')
      .where('k.id', 'in', ids)
      .where((is) => is.or([is('k.revoked_at', 'is', null), is('k.lets_finish', '=', 1)]))
      .where((is) => is.or([is('k.expires_at', 'is', null), is('k.expires_at', '>', now)]))
      .where((is) => is.or([is('m.role', 'is', null), is('m.role', '!=', 'viewer')]))
      .execute();
  }

  #selectSessions(ids: readonly string[]) {
    return this.#db
      .selectFrom('sessions as s')
      .innerJoin('memberships as m', (join) =>
        join.onRef('m.user_id', '=', 's.user_id').onRef('m.account_id', '=', 's.account_id'),
      )
      .select('s.id')
      .where('s.id', 'in', ids)
      .where('s.expires_at', '>', this.#clock.now())
      .where('m.role', '!=', 'viewer')
      .execute();
  }
}

const idOf = (principal: Principal) =>
  principal.kind === 'key' ? principal.keyId : principal.sessionId;

function toParts(ids: readonly string[]): string[][] {
  const distinct = [...new Set(ids)];
  return Array.from({ length: Math.ceil(distinct.length / maxIds) }, (_, at) =>
    distinct.slice(at * maxIds, (at + 1) * maxIds),
  );
}
