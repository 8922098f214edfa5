// Background responses in the database. A server runs one while it holds its lease, and a run is never begun twice: it
// would be billed twice. Deleting the row of a run ends it. The server that deleted the row writes the last event.

import { isCallerGone } from '#accounts/caller-gone.ts';
import { countRows } from '#db/count-rows.ts';
import { Lease, released } from '#db/lease.ts';
import type { ResponseEventsRow, ResponseRunRow } from '#db/tables/response-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { ResponseObject } from '#inference/apis/responses/schema.ts';
import type { Clock } from '#lib/clock.ts';
import { fromBytes, toBytes } from '#lib/memory/byte-string.ts';

/** A server that is silent for this long has lost its runs. */
const leaseMs = 30_000;
/** Events are kept for this long after the last one, for clients that come back. */
const eventsKeptMs = 3_600_000;
const maxRecovered = 100;
/** Batches of events read at once. */
const maxBatches = 16;
/** Queued runs read at once. */
const pageSize = 500;

/** Whole events, the first of which has the sequence number `first`. A byte string. */
export interface EventBatch {
  readonly first: number;
  readonly events: string;
}

export interface OwnBatch extends EventBatch {
  readonly id: string;
}

export type ReservedRun = Pick<
  ResponseRunRow,
  'response_id' | 'account_id' | 'key_id' | 'reservation'
>;

export class RunRows {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #runner: string;
  readonly #singleServer: boolean;
  readonly #lease: Lease<'response_runs'>;

  /** With `singleServer`, every run of another runner is lost. */
  constructor(
    db: Database,
    clock: Clock,
    { runner, singleServer }: { runner: string; singleServer: boolean },
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#runner = runner;
    this.#singleServer = singleServer;
    this.#lease = new Lease('response_runs', clock, { runner, leaseMs });
  }

  /** Counts the runs of an account, to be checked in the transaction that adds one. */
  count(tx: Tx, accountId: string): Promise<number> {
    return countRows(tx.selectFrom('response_runs').where('account_id', '=', accountId));
  }

  async add(tx: Tx, run: Omit<ResponseRunRow, 'runner' | 'lease_until' | 'created_at'>) {
    const created_at = this.#clock.now();
    await tx
      .insertInto('response_runs')
      .values({ ...run, ...released, created_at })
      .execute();
  }

  /** Begins the oldest queued run; undefined if there is none, or another server was faster. */
  async claim(): Promise<ResponseRunRow | undefined> {
    const run = await this.#lease.claim(this.#db, (row) => row('runner', 'is', null));
    if (run === undefined) return undefined;
    // Not in one transaction: a cancellation locks the two rows in the opposite order.
    await this.#db
      .updateTable('responses')
      .set({ status: 'in_progress' })
      .where('id', '=', run.response_id)
      .where('status', '=', 'queued')
      .execute();
    return run;
  }

  /** What all queued runs have reserved. */
  async *queued(): AsyncGenerator<ReservedRun> {
    for (let last = ''; ; ) {
      const page = await this.#db
        .selectFrom('response_runs')
        .select(['response_id', 'account_id', 'key_id', 'reservation'])
        .where('runner', 'is', null)
        .where('response_id', '>', last)
        .orderBy('response_id')
        .limit(pageSize)
        .execute();
      yield* page;
      const next = page.at(-1);
      if (next === undefined) return;
      last = next.response_id;
    }
  }

  /** Renews the leases of these runs and writes their events. Returns the ids of those that this server still has. */
  write(batches: readonly OwnBatch[]): Promise<Set<string>> {
    const ids = batches.map(({ id }) => id);
    return this.#db.transaction().execute(async (tx) => {
      const rows = await tx
        .updateTable('response_runs')
        .set(this.#lease.held())
        .where('runner', '=', this.#runner)
        .where('response_id', 'in', ids)
        .returning('response_id')
        .execute();
      const owned = new Set(rows.map(({ response_id }) => response_id));
      const own = batches.filter(({ id }) => owned.has(id));
      await this.#insert(tx, own);
      return owned;
    });
  }

  /** Ends a run wherever it is, with one event. */
  async close(tx: Tx, response: ResponseObject): Promise<void> {
    const { numDeletedRows } = await tx
      .deleteFrom('response_runs')
      .where('response_id', '=', response.id)
      .executeTakeFirst();
    if (numDeletedRows === 0n) return;
    const last = await tx
      .selectFrom('response_events')
      .select(['last', 'events'])
      .where('response_id', '=', response.id)
      .orderBy('first', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (last !== undefined && finalEvent.test(last.events)) return;
    const first = (last?.last ?? -1) + 1;
    const type = `response.${response.status}`;
    const data = JSON.stringify({ type, sequence_number: first, response });
    const events = toBytes(`event: ${type}\ndata: ${data}\n\n`);
    await this.#insert(tx, [{ id: response.id, first, events }]);
  }

  /** Runs of servers that are silent. */
  findLost(): Promise<{ response_id: string; account_id: string }[]> {
    return this.#db
      .selectFrom('response_runs')
      .select(['response_id', 'account_id'])
      .where('runner', 'is not', null)
      .where((run) =>
        run.or([
          run('lease_until', '<', this.#clock.now()),
          ...(this.#singleServer ? [run('runner', '!=', this.#runner)] : []),
        ]),
      )
      .limit(maxRecovered)
      .execute();
  }

  /** Runs whose callers may no longer use their account. */
  findRevoked(): Promise<{ response_id: string; account_id: string }[]> {
    return this.#db
      .selectFrom('response_runs')
      .select(['response_id', 'account_id'])
      .where(isCallerGone('response_runs', this.#clock.now()))
      .limit(maxRecovered)
      .execute();
  }

  /** The states of responses, by their ids. Deleted ones have none. */
  async findStates(ids: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#db
      .selectFrom('responses')
      .select(['id', 'status'])
      .where('id', 'in', ids)
      .execute();
    return new Map(rows.map(({ id, status }) => [id, status]));
  }

  /** True while a server runs it, or will. */
  async isRunning(id: string): Promise<boolean> {
    const run = await this.#db
      .selectFrom('response_runs')
      .select('response_id')
      .where('response_id', '=', id)
      .executeTakeFirst();
    return run !== undefined;
  }

  async hasEvents(id: string): Promise<boolean> {
    return (await this.readEvents(id, -1, 1)) !== undefined;
  }

  /** Events after the one with this number, as many as are read at once. */
  async readEvents(id: string, after: number, limit = maxBatches): Promise<EventBatch | undefined> {
    const rows = await this.#db
      .selectFrom('response_events')
      .select(['first', 'events'])
      .where('response_id', '=', id)
      .where('last', '>', after)
      .orderBy('first')
      .limit(limit)
      .execute();
    const [oldest] = rows;
    if (oldest === undefined) return undefined;
    const all = rows.map(({ events }) => events).join('');
    const skipped = Math.max(0, after + 1 - oldest.first);
    return { first: oldest.first + skipped, events: toBytes(skip(all, skipped)) };
  }

  async sweep(): Promise<void> {
    await this.#db
      .deleteFrom('response_events')
      .where('created_at', '<', this.#clock.now() - eventsKeptMs)
      .where('response_id', 'not in', this.#db.selectFrom('response_runs').select('response_id'))
      .execute();
  }

  async #insert(tx: Tx, batches: readonly OwnBatch[]): Promise<void> {
    const created_at = this.#clock.now();
    const rows: ResponseEventsRow[] = batches
      .filter(({ events }) => events !== '')
      .map(({ id, first, events }) => ({
        response_id: id,
        first,
        last: first + countEvents(events) - 1,
        created_at,
        events: fromBytes(events),
      }));
    if (rows.length > 0) await tx.insertInto('response_events').values(rows).execute();
  }
}

const finalEvent = /^event: response\.(completed|incomplete|failed|cancelled)$/m;

/** Each event ends with an empty line. */
export function countEvents(events: string): number {
  let count = 0;
  for (let at = events.indexOf('\n\n'); at !== -1; at = events.indexOf('\n\n', at + 2)) count++;
  return count;
}

function skip(events: string, count: number): string {
  let from = 0;
  for (let left = count; left > 0; left--) from = events.indexOf('\n\n', from) + 2;
  return events.slice(from);
}
