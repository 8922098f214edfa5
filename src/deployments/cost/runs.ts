// When the engines of replicas started, became ready and ended. It is written at each of these moments and once a
// minute, so that a server that is killed loses at most a minute. What a start takes is estimated from it.

import type { DeploymentRunRow } from '#db/tables/deployment-row.ts';
import type { Database } from '#db/tables/tables.ts';
import type { ReplicaFacts } from '#deployments/decision/scale.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { Clock } from '#lib/clock.ts';

/** Runs that ended longer ago are deleted. */
export const runsKeptMs = 31 * 86_400_000;
/** Starts from which the duration of the next one is estimated. */
const maxLoads = 5;
const saveEveryMs = 60_000;

export class DeploymentRuns {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #mutex = createKeyedMutex();
  /** Runs that have not ended, by deployment and replica. */
  readonly #current = new Map<string, Map<string, DeploymentRunRow>>();
  /** Durations of the last starts of each deployment, the newest last. */
  readonly #loads = new Map<string, number[]>();
  #unsaved = new Map<string, DeploymentRunRow>();
  #savedAt = 0;
  readonly #openedAt: number;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#openedAt = clock.now();
  }

  /** Reads how long earlier starts took, and deletes old runs. */
  async open(): Promise<void> {
    await this.sweep();
    const runs = await this.#db
      .selectFrom('deployment_runs')
      .select(['deployment_id', 'started_at', 'ready_at'])
      .where('ready_at', 'is not', null)
      .orderBy('started_at')
      .execute();
    for (const { deployment_id, started_at, ready_at } of runs)
      if (ready_at !== null) this.#addLoad(deployment_id, ready_at - started_at);
  }

  /** Deletes old runs, and those of deployments that were removed. */
  async sweep(): Promise<void> {
    await this.#db
      .deleteFrom('deployment_runs')
      .where(({ or, eb, selectFrom }) =>
        or([
          eb('seen_at', '<', this.#clock.now() - runsKeptMs),
          eb('deployment_id', 'not in', selectFrom('deployments').select('id')),
        ]),
      )
      .execute();
  }

  /**
   * Compares the replicas of a deployment with what was known of them. Must be called at each tick. The price is that of
   * the machine of a replica that starts now.
   */
  observe(
    deploymentId: string,
    replicas: readonly ReplicaFacts[],
    hourlyCents: () => number,
  ): void {
    const known = this.#current.get(deploymentId) ?? new Map<string, DeploymentRunRow>();
    if (known.size === 0 && replicas.length === 0) return;
    const now = this.#clock.now();
    const current = new Map(
      replicas.map((replica) => {
        const run = known.get(replica.id) ?? newRun(deploymentId, replica, hourlyCents());
        // A replica costs nothing before its engine loads.
        if (run.ready_at === null) run.started_at = replica.loadingSince;
        if (run.ready_at === null && replica.readyAt !== null) {
          run.ready_at = replica.readyAt;
          // One that an earlier process started was ready before.
          if (replica.startedAt >= this.#openedAt)
            this.#addLoad(deploymentId, run.ready_at - run.started_at);
          this.#unsaved.set(run.id, run);
        }
        run.seen_at = now;
        return [run.id, run];
      }),
    );
    for (const [id, run] of current) if (!known.has(id)) this.#unsaved.set(id, run);
    for (const [id, run] of known) if (!current.has(id)) this.#unsaved.set(id, run);
    if (current.size === 0) this.#current.delete(deploymentId);
    else this.#current.set(deploymentId, current);
  }

  /** Runs that ended after a time, or still go on. */
  async list(deploymentId: string, since: number): Promise<readonly DeploymentRunRow[]> {
    const stored = await this.#db
      .selectFrom('deployment_runs')
      .selectAll()
      .where('deployment_id', '=', deploymentId)
      .where('seen_at', '>', since)
      .execute();
    const current = this.#current.get(deploymentId) ?? new Map<string, DeploymentRunRow>();
    return [...stored.filter(({ id }) => !current.has(id)), ...current.values()];
  }

  /** The median of the last starts in milliseconds; null before the first. */
  loadMs(deploymentId: string): number | null {
    const sorted = (this.#loads.get(deploymentId) ?? []).toSorted((one, other) => one - other);
    return sorted[Math.floor(sorted.length / 2)] ?? null;
  }

  forget(deploymentId: string): void {
    this.#loads.delete(deploymentId);
    this.#current.delete(deploymentId);
  }

  /** True if there is something to save. */
  get isDue(): boolean {
    if (this.#unsaved.size > 0) return true;
    return this.#current.size > 0 && this.#clock.now() - this.#savedAt >= saveEveryMs;
  }

  /** If the database fails, the same is saved the next time. */
  save(): Promise<void> {
    return this.#mutex.run('save', async () => {
      if (!this.isDue) return;
      const unsaved = this.#unsaved;
      for (const runs of this.#current.values())
        for (const run of runs.values()) unsaved.set(run.id, run);
      this.#unsaved = new Map();
      this.#savedAt = this.#clock.now();
      try {
        await this.#write([...unsaved.values()].map((run) => ({ ...run })));
      } catch (error) {
        this.#unsaved = new Map([...unsaved, ...this.#unsaved]);
        throw error;
      }
    });
  }

  async #write(runs: DeploymentRunRow[]): Promise<void> {
    await this.#db
      .insertInto('deployment_runs')
      .values(runs)
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet(({ ref, fn }) => ({
          started_at: ref('excluded.started_at'),
          ready_at: fn.coalesce('deployment_runs.ready_at', 'excluded.ready_at'),
          seen_at: ref('excluded.seen_at'),
        })),
      )
      .execute();
  }

  #addLoad(deploymentId: string, ms: number): void {
    const loads = [...(this.#loads.get(deploymentId) ?? []), ms];
    this.#loads.set(deploymentId, loads.slice(-maxLoads));
  }
}

const newRun = (
  deploymentId: string,
  { id, loadingSince }: ReplicaFacts,
  hourlyCents: number,
): DeploymentRunRow => ({
  id,
  deployment_id: deploymentId,
  started_at: loadingSince,
  ready_at: null,
  seen_at: loadingSince,
  hourly_cents: hourlyCents,
});
