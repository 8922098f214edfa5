// The servers that share the database. Each writes a heartbeat with its address, so that the others
// can send it requests, and take over its deployments when it is lost.

import { randomBytes } from 'node:crypto';
import type { Database, Tx } from '#db/tables/tables.ts';
import { repeat } from '#lib/async/repeat.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';

/** Where another server is, and the key that it asks for. */
export interface Peer {
  readonly id: string;
  readonly url: string;
  readonly key: string;
}

const heartbeatEveryMs = 5_000;
/** After this time without a heartbeat, a server is lost. */
export const graceMs = 30_000;
/** After this time, the row of a server that is lost or was stopped is deleted. */
const keptMs = 30 * 86_400_000;

export class ServerRows {
  readonly id: string;
  /** The key that this server accepts from the others. A new one at each start. */
  readonly key = randomBytes(32).toString('hex');
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #seal: Seal;
  readonly #url: string | null;
  #endHeartbeats: () => void = () => {};
  #heartbeat: Promise<void> | undefined;
  #heartbeatAt = 0;
  /** Since when the heartbeats of this server are in time. */
  #steadySince = 0;

  constructor(
    db: Database,
    clock: Clock,
    seal: Seal,
    { id, url }: { id: string; url: string | null },
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#seal = seal;
    this.id = id;
    this.#url = url;
  }

  /** Writes heartbeats until `leave`, also while the last requests end. */
  async start(): Promise<void> {
    await this.#writeHeartbeat();
    // The next one makes up for one that failed.
    const write = () => void this.#writeHeartbeat().catch(() => {});
    this.#endHeartbeats = repeat(this.#clock, heartbeatEveryMs, write);
  }

  /** This server ends: others need not wait. */
  async leave(): Promise<void> {
    this.#endHeartbeats();
    await this.#heartbeat?.catch(() => {});
    await this.#write(-this.#clock.now());
  }

  #writeHeartbeat(): Promise<void> {
    const now = this.#clock.now();
    this.#heartbeat = this.#write(now).then(() => {
      if (now - this.#heartbeatAt > graceMs / 2) this.#steadySince = now;
      this.#heartbeatAt = now;
    });
    return this.#heartbeat;
  }

  /** `seenAt` is negative if the server is being stopped. */
  async #write(seenAt: number): Promise<void> {
    const key = this.#url === null ? null : this.#seal.close(this.key, this.id);
    const values = { url: this.#url, key, seen_at: seenAt };
    await this.#db
      .insertInto('servers')
      .values({ id: this.id, ...values })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
      .execute();
  }

  /**
   * Those of the given servers that are lost, and those that can be reached. One without any heartbeat is given the time to
   * write one.
   */
  async findLostAndPeers(
    ids: readonly string[],
  ): Promise<{ lost: ReadonlySet<string>; peers: Peer[] }> {
    const now = this.#clock.now();
    const rows = await this.#db.selectFrom('servers').selectAll().execute();
    const known = new Set(rows.map(({ id }) => id));
    const named = new Set(ids);
    for (const id of named) if (!known.has(id)) await this.#insertUnknown(id, now);
    // After an outage of the database, or a pause of this computer, the others are given the same time.
    const isSteady = now - this.#steadySince >= graceMs && now - this.#heartbeatAt < graceMs / 2;
    const isLost = (seenAt: number) => seenAt <= 0 || (isSteady && seenAt <= now - graceMs);
    const lost = new Set(rows.filter(({ seen_at }) => isLost(seen_at)).map(({ id }) => id));
    const isOld = (seenAt: number) => Math.abs(seenAt) < now - keptMs;
    // The row of a server that a deployment names would be inserted again, as if that server might run.
    const old = rows
      .filter(({ id, seen_at }) => isOld(seen_at) && id !== this.id && !named.has(id))
      .map(({ id }) => id);
    if (old.length > 0) await this.#db.deleteFrom('servers').where('id', 'in', old).execute();
    const peers = rows
      .filter(({ id }) => id !== this.id && !lost.has(id))
      .flatMap(({ id, url, key }) => this.#toPeer(id, url, key));
    return { lost, peers };
  }

  /** What people know a server by; null if it is lost or was stopped. */
  async findRunning(tx: Tx, id: string): Promise<string | null> {
    const row = await tx
      .selectFrom('servers')
      .select('url')
      .where('id', '=', id)
      .where('seen_at', '>', this.#clock.now() - graceMs)
      .executeTakeFirst();
    return row === undefined ? null : (row.url ?? id);
  }

  async #insertUnknown(id: string, now: number): Promise<void> {
    await this.#db
      .insertInto('servers')
      .values({ id, url: null, key: null, seen_at: now })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  }

  /** Empty for one that can't be reached, or has another secret_key. */
  #toPeer(id: string, url: string | null, sealed: string | null): Peer[] {
    if (url === null || sealed === null) return [];
    try {
      return [{ id, url, key: this.#seal.open(sealed, id) }];
    } catch {
      return [];
    }
  }
}
