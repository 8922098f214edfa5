// Deletes usage that is older than the configured retention, and the oldest requests if there are more than the
// configured number, in small steps that hold up no other query. Sums stay.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { PostgresAdapter, type RawBuilder, sql } from 'kysely';
import { dayMs, findNames, toDay } from '#accounts/usage/writing/names.ts';
import { toRawTx } from '#db/raw.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { UsageStorage } from './schema.ts';

export interface RetentionOptions {
  requestDays: number;
  hourDays: number;
  /** Maximum stored requests. */
  maxRows: number;
}

/** Requests deleted at once. */
const deleteRows = 500;
/** Hours of one account deleted at once; each has a row per key, model and backend. */
const deleteHours = 24;
const deleteNames = 5000;
/** A name outlives its last request by this, for requests that are being written meanwhile. */
const spareDays = 2;
/** Share of `maxRows` from which on people are warned. */
const nearlyFull = 0.8;

export class UsageRetention {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #log: FastifyBaseLogger;
  readonly #options: RetentionOptions;
  #storage: UsageStorage;
  #isSweeping = false;

  constructor(db: Database, clock: Clock, log: FastifyBaseLogger, options: RetentionOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#log = log;
    this.#options = options;
    this.#storage = { rows: 0, max_rows: options.maxRows, state: 'ok' };
  }

  /** How full the table was at the last sweep. */
  get storage(): UsageStorage {
    return this.#storage;
  }

  /** Does nothing while an earlier sweep runs. */
  async sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    try {
      await this.#sweepOld();
      await this.#sweepExcess();
      await this.#sweepNames();
    } finally {
      this.#isSweeping = false;
    }
  }

  async #sweepOld(): Promise<void> {
    const { requestDays, hourDays } = this.#options;
    const before = this.#clock.now() - requestDays * dayMs;
    for (const ref of await this.#readAccounts()) {
      while ((await this.#deleteRequests(ref, before, deleteRows)) === deleteRows) {
        await yieldToEventLoop();
      }
    }
    const accounts = await this.#db.selectFrom('accounts').select('id').execute();
    for (const { id } of accounts) await this.#sweepHours(id, hourDays);
  }

  async #sweepExcess(): Promise<void> {
    const { maxRows } = this.#options;
    const rows = await countRows(this.#db);
    let excess = rows - maxRows;
    while (excess > 0) {
      const deleted = await this.#deleteOldest(Math.min(excess, deleteRows));
      if (deleted === 0) break;
      excess -= deleted;
      await yieldToEventLoop();
    }
    this.#report(rows);
  }

  /** Logs once when the table becomes nearly full, and once when rows are first deleted. */
  #report(rows: number): void {
    const { maxRows } = this.#options;
    const before = this.#storage.state;
    const state = rows >= maxRows ? 'full' : rows >= maxRows * nearlyFull ? 'near' : 'ok';
    this.#storage = { rows: Math.min(rows, maxRows), max_rows: maxRows, state };
    if (state === 'near' && before === 'ok') {
      this.#log.warn(
        { rows, maxRows },
        'the record of requests is nearly full: the oldest will be deleted at usage.max_rows',
      );
    }
    if (state === 'full' && before !== 'full') {
      this.#log.warn(
        { rows, maxRows },
        'the record of requests is full: the oldest are deleted, sums stay (usage.max_rows)',
      );
    }
  }

  async #deleteOldest(count: number): Promise<number> {
    const oldest = await this.#readOldest();
    const [first, second] = oldest.toSorted((a, b) => a.at - b.at);
    if (first === undefined) return 0;
    // Up to where another account has the oldest request.
    const before = second === undefined ? Number.MAX_SAFE_INTEGER : second.at + 1;
    return this.#deleteRequests(first.ref, before, count);
  }

  async #deleteRequests(ref: number, before: number, count: number): Promise<number> {
    const old = this.#db
      .selectFrom('usage_requests')
      .select(['account_ref', 'at', 'id'])
      .where('account_ref', '=', ref)
      .where('at', '<', before)
      .orderBy('at')
      .limit(count);
    const { numDeletedRows } = await this.#db
      .deleteFrom('usage_requests')
      .where(({ eb, refTuple }) =>
        eb(refTuple('account_ref', 'at', 'id'), 'in', old.$asTuple('account_ref', 'at', 'id')),
      )
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  async #sweepHours(accountId: string, days: number): Promise<void> {
    const before = this.#clock.now() - days * dayMs;
    for (;;) {
      const oldest = await this.#db
        .selectFrom('usage_hours')
        .select('hour')
        .where('account_id', '=', accountId)
        .where('hour', '<', before)
        .orderBy('hour')
        .limit(1)
        .executeTakeFirst();
      if (oldest === undefined) return;
      await this.#db
        .deleteFrom('usage_hours')
        .where('account_id', '=', accountId)
        .where('hour', '<', Math.min(before, oldest.hour + deleteHours * 3_600_000))
        .execute();
      await yieldToEventLoop();
    }
  }

  /** Names that no request uses any more. */
  async #sweepNames(): Promise<void> {
    const oldest = (await this.#readOldest()).map(({ at }) => at);
    const before = toDay(Math.min(this.#clock.now(), ...oldest)) - spareDays;
    for (;;) {
      const unused = this.#db
        .selectFrom('usage_names')
        .select('ref')
        .where('last_day', '<', before)
        .limit(deleteNames);
      const { numDeletedRows } = await this.#db
        .deleteFrom('usage_names')
        .where('ref', 'in', unused)
        .executeTakeFirst();
      if (numDeletedRows < deleteNames) return;
      await yieldToEventLoop();
    }
  }

  /** The time of each account's oldest request. */
  async #readOldest(): Promise<{ ref: number; at: number }[]> {
    const oldest: { ref: number; at: number }[] = [];
    for (const ref of await this.#readAccounts()) {
      const { at } = await this.#db
        .selectFrom('usage_requests')
        .select(({ fn }) => fn.min<number | null>('at').as('at'))
        .where('account_ref', '=', ref)
        .executeTakeFirstOrThrow();
      if (at !== null) oldest.push({ ref, at });
    }
    return oldest;
  }

  async #readAccounts(): Promise<number[]> {
    const accounts = await this.#db.selectFrom('accounts').select('id').execute();
    const ids = accounts.map(({ id }) => id);
    const names = await findNames(toRawTx(this.#db), ids);
    return [...names.values()].map(({ ref }) => ref);
  }
}

/**
 * Neither database counts millions of rows in an instant. SQLite's row numbers ascend and only the oldest rows are
 * deleted, so the distance between the first and the last is the number of rows, or a little more. PostgreSQL keeps an
 * estimate, which is taken for a large table.
 */
async function countRows(db: Database): Promise<number> {
  if (db.getExecutor().adapter instanceof PostgresAdapter) {
    const estimate = await readCount(
      db,
      sql`select reltuples from pg_class where oid = 'usage_requests'::regclass`,
    );
    return estimate > largeTableRows
      ? estimate
      : readCount(db, sql`select count(*) from usage_requests`);
  }
  const [first, last] = [
    sql`select min(rowid) from usage_requests`,
    sql`select max(rowid) from usage_requests`,
  ];
  return readCount(db, sql`select coalesce((${last}) - (${first}) + 1, 0)`);
}

const largeTableRows = 1_000_000;

async function readCount(db: Database, query: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ count: number }>`select (${query}) as count`.execute(db);
  return Number(rows[0]?.count ?? 0);
}
