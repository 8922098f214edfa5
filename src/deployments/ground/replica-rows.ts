// Replicas on machines as rows, so that a server that was killed finds its machines again. A row is written with its
// instance and deleted when that is told to terminate, each in one transaction.

import type { Database, Tx } from '#db/tables/tables.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import type { Rest, Resting } from './ladder.ts';
import { completeSpec, type DeploymentSpec } from './spec.ts';

/** A replica that an earlier process launched. */
export interface StoredReplica {
  readonly id: string;
  readonly deploymentId: string;
  readonly accountId: string;
  readonly revision: number;
  readonly startedAt: number;
  readonly readyAt: number | null;
  /** Null if it does not rest. */
  readonly rest: Rest | null;
  /** Null if a server with another key wrote it. */
  readonly settings: ReplicaSettings | null;
}

export interface NewReplica {
  readonly id: string;
  readonly deployment: { readonly id: string; readonly accountId: string };
  readonly revision: number;
  readonly spec: DeploymentSpec;
}

export interface ReplicaSettings {
  readonly spec: DeploymentSpec;
  /** The key of the engine. */
  readonly key: string;
}

/** The deployment was removed, or another server runs it now. This server must leave its machines alone. */
export class TakenOver extends Error {
  constructor() {
    super('The deployment was removed, or another server runs it now.');
  }
}

export class ReplicaRows {
  readonly #db: Database;
  readonly #seal: Seal;
  readonly #hostId: string;

  constructor(db: Database, seal: Seal, hostId: string) {
    this.#db = db;
    this.#seal = seal;
    this.#hostId = hostId;
  }

  /** Those of the deployments that this server runs. */
  async own(): Promise<StoredReplica[]> {
    const rows = await this.#db
      .selectFrom('replicas')
      .selectAll()
      .where('host_id', '=', this.#hostId)
      .orderBy('started_at')
      .execute();
    return rows.map((row) => ({
      id: row.id,
      deploymentId: row.deployment_id,
      accountId: row.account_id,
      revision: row.revision,
      startedAt: row.started_at,
      readyAt: row.ready_at,
      rest:
        row.resting === null || row.idle_since === null
          ? null
          : { step: row.resting, idleSince: row.idle_since },
      settings: this.#open(row.settings, row.id),
    }));
  }

  /** Throws TakenOver if another server runs the deployment by now. */
  async insert(
    tx: Tx,
    { id, deployment, revision, spec }: NewReplica,
    { key, startedAt }: { key: string; startedAt: number },
  ): Promise<void> {
    const settings: ReplicaSettings = { spec, key };
    const owned = await tx
      .selectFrom('deployments')
      .select('id')
      .where('id', '=', deployment.id)
      .where('runner_id', '=', this.#hostId)
      .executeTakeFirst();
    if (owned === undefined) throw new TakenOver();
    await tx
      .insertInto('replicas')
      .values({
        id,
        deployment_id: deployment.id,
        account_id: deployment.accountId,
        host_id: this.#hostId,
        revision,
        settings: this.seal(JSON.stringify(settings), id),
        started_at: startedAt,
        ready_at: null,
        resting: null,
        idle_since: null,
      })
      .execute();
  }

  /** Only the first time is kept. */
  async setReady(id: string, at: number): Promise<void> {
    await this.#db
      .updateTable('replicas')
      .set(({ fn, val }) => ({
        ready_at: fn.coalesce('ready_at', val(at)),
        resting: null,
        idle_since: null,
      }))
      .where('id', '=', id)
      .where('host_id', '=', this.#hostId)
      .execute();
  }

  /** Throws TakenOver if another server runs the deployment by now. */
  async setResting(id: string, resting: Resting, idleSince: number): Promise<void> {
    const { numUpdatedRows } = await this.#db
      .updateTable('replicas')
      .set({ resting, idle_since: idleSince })
      .where('id', '=', id)
      .where('host_id', '=', this.#hostId)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) throw new TakenOver();
  }

  /** Takes replicas of removed deployments from lost servers, to terminate their machines. Returns how many there were. */
  async takeOrphans(lost: ReadonlySet<string>): Promise<number> {
    if (lost.size === 0) return 0;
    const { numUpdatedRows } = await this.#db
      .updateTable('replicas')
      .set({ host_id: this.#hostId })
      .where('host_id', 'in', [...lost])
      .where('deployment_id', 'not in', ({ selectFrom }) => selectFrom('deployments').select('id'))
      .executeTakeFirst();
    return Number(numUpdatedRows);
  }

  /** Throws TakenOver if another server runs the deployment by now. */
  async remove(tx: Tx, id: string): Promise<void> {
    const row = await tx
      .selectFrom('replicas')
      .select('host_id')
      .where('id', '=', id)
      .executeTakeFirst();
    if (row !== undefined && row.host_id !== this.#hostId) throw new TakenOver();
    await tx.deleteFrom('replicas').where('id', '=', id).execute();
  }

  seal(text: string, id: string): string {
    return this.#seal.close(text, id);
  }

  #open(sealed: string, id: string): ReplicaSettings | null {
    try {
      const { spec, key } = JSON.parse(this.#seal.open(sealed, id)) as ReplicaSettings;
      return { spec: completeSpec(spec), key };
    } catch {
      return null;
    }
  }
}
