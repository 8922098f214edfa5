// The servers that share the database. Each says now and then that it runs, so that another can take over its deployments
// when it is lost.

import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

/** After this time without a sign of life, a server is lost. */
const graceMs = 30_000;

export class ServerRows {
  readonly id: string;
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock, id: string) {
    this.#db = db;
    this.#clock = clock;
    this.id = id;
  }

  async beat(): Promise<void> {
    await this.#write(this.id, this.#clock.now());
  }

  /** This server ends: others need not wait. */
  async leave(): Promise<void> {
    await this.#write(this.id, 0);
  }

  async #write(id: string, seenAt: number): Promise<void> {
    await this.#db
      .insertInto('servers')
      .values({ id, url: null, key: null, seen_at: seenAt })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: seenAt }))
      .execute();
  }

  /** Those of the given servers that are lost. One that never said that it runs is given the time to do so. */
  async findLost(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const now = this.#clock.now();
    const rows = await this.#db.selectFrom('servers').select(['id', 'seen_at']).execute();
    const seenAt = new Map(rows.map(({ id, seen_at }) => [id, seen_at]));
    for (const id of new Set(ids)) if (!seenAt.has(id)) await this.#write(id, now);
    return new Set(ids.filter((id) => (seenAt.get(id) ?? now) <= now - graceMs));
  }
}
