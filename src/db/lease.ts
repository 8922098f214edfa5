// Leases on rows. A process works on a row while it is the row's `runner`, until `lease_until` or
// the next renewal. Every change is a compare-and-set, so a row survives its process, and what a
// process without the lease writes is dropped.

import type { Expression, ExpressionBuilder, SqlBool, UpdateObject } from 'kysely';
import type { Database, Tables, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';

const ids = { batches: 'id', weight_pulls: 'id', response_runs: 'response_id' } as const;

/** The tables that have the columns `runner`, `lease_until` and `created_at`. */
type LeaseTable = keyof typeof ids;

type Condition<Table extends LeaseTable> = (
  row: ExpressionBuilder<Tables, Table>,
) => Expression<SqlBool>;

export interface LeaseOptions {
  /** Identifies this process in the leases it holds. */
  readonly runner: string;
  readonly leaseMs: number;
}

/** What gives a row to the next process that asks. */
export const released = { runner: null, lease_until: null };

export class Lease<Table extends LeaseTable> {
  readonly #table: 'batches';
  readonly #id: 'id';
  readonly #clock: Clock;
  readonly #options: LeaseOptions;

  constructor(table: Table, clock: Clock, options: LeaseOptions) {
    // Satisfies the types: all tables have the columns that are used here.
    this.#table = table as 'batches';
    this.#id = ids[table] as 'id';
    this.#clock = clock;
    this.#options = options;
  }

  /** What a claim writes. A renewal repeats it. */
  held(): { runner: string; lease_until: number } {
    const { runner, leaseMs } = this.#options;
    return { runner, lease_until: this.#clock.now() + leaseMs };
  }

  /** Claims the oldest of the rows that no process holds. Undefined if there is none, or another process was faster. */
  async claim(
    db: Database,
    isWaiting: Condition<Table>,
    values: UpdateObject<Tables, Table> = {},
  ): Promise<Tables[Table] | undefined> {
    const now = this.#clock.now();
    const isFree: Condition<'batches'> = (row) =>
      row.and([
        row.or([row('runner', 'is', null), row('lease_until', '<', now)]),
        isWaiting(row as never),
      ]);
    const claimed = await db
      .updateTable(this.#table)
      .set({ ...(values as object), ...this.held() })
      // Repeated, so that a process that waited for the row lock sees them fail.
      .where(isFree)
      .where(this.#id, '=', (query) =>
        query
          .selectFrom(this.#table)
          .select(this.#id)
          .where(isFree)
          .orderBy('created_at')
          .orderBy(this.#id)
          .limit(1),
      )
      .returningAll()
      .executeTakeFirst();
    return claimed as Tables[Table] | undefined;
  }

  /** Changes a row that this process holds. Undefined if it no longer does, or the row is not as it must be. */
  async update(
    db: Database | Tx,
    id: string,
    values: UpdateObject<Tables, Table>,
    isExpected: Condition<Table>,
  ): Promise<Tables[Table] | undefined> {
    const updated = await db
      .updateTable(this.#table)
      .set(values as object)
      .where(this.#id, '=', id)
      .where('runner', '=', this.#options.runner)
      .where(isExpected as unknown as Condition<'batches'>)
      .returningAll()
      .executeTakeFirst();
    return updated as Tables[Table] | undefined;
  }
}
