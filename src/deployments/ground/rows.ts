// Deployments as rows. The environment of the engine is encrypted. Each is run by one server at a time: engines beside a
// server by the one that it was created on, machines by any.

import type { FastifyBaseLogger } from 'fastify';
import { lockAccount } from '#db/lock-account.ts';
import type { DeploymentRow } from '#db/tables/deployment-row.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import { type DeploymentSpec, isSameEngine, parseSpec } from './spec.ts';

/** A deployment as it is stored. */
export interface Stored {
  readonly id: string;
  readonly name: string;
  readonly accountId: string;
  /** The server that runs it. */
  readonly runnerId: string;
  readonly spec: DeploymentSpec;
  readonly revision: number;
  readonly isStopped: boolean;
  readonly canRollBack: boolean;
  /** True if it comes from the configuration file. */
  readonly inFile: boolean;
  readonly createdAt: number;
}

interface RowParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
}

export class DeploymentRows {
  readonly #db: Database;
  readonly #log: FastifyBaseLogger;
  readonly #clock: Clock;
  readonly #seal: Seal;
  /** Id of this server. */
  readonly hostId: string;

  constructor({ db, clock, log }: RowParts, seal: Seal, hostId: string) {
    this.#db = db;
    this.#log = log;
    this.#clock = clock;
    this.#seal = seal;
    this.hostId = hostId;
  }

  /** Those that this server runs. */
  own(): Promise<Stored[]> {
    return this.#read('runner_id', '=', this.hostId);
  }

  /** Those of other servers. */
  ofOthers(): Promise<Stored[]> {
    return this.#read('runner_id', '!=', this.hostId);
  }

  /** Runs a deployment from now on. Returns false if its server has changed, or it is gone. */
  takeOver({ id, accountId, runnerId }: Stored): Promise<boolean> {
    return this.#db.transaction().execute(async (tx) => {
      // The server may not be lost after all, and launch or release a machine at this moment.
      await lockAccount(tx, accountId);
      const { numUpdatedRows } = await tx
        .updateTable('deployments')
        .set({ runner_id: this.hostId })
        .where('id', '=', id)
        .where('runner_id', '=', runnerId)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await tx
        .updateTable('replicas')
        .set({ host_id: this.hostId })
        .where('deployment_id', '=', id)
        .execute();
      return true;
    });
  }

  /** Which of these deployments still exist. */
  async findExisting(ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    const rows = await this.#db
      .selectFrom('deployments')
      .select('id')
      .where('id', 'in', ids)
      .execute();
    return new Set(rows.map(({ id }) => id));
  }

  /** Those of an account, on every server. */
  ofAccount(accountId: string): Promise<Stored[]> {
    return this.#read('account_id', '=', accountId);
  }

  /** Undefined also for a row that this server can't decrypt. */
  async find(tx: Tx, accountId: string, name: string): Promise<Stored | undefined> {
    const row = await tx
      .selectFrom('deployments')
      .selectAll()
      .where('name', '=', name)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row && this.#tryToOpen(row);
  }

  /** Also removes a row that this server can't decrypt. Returns false if there is none. */
  async remove(tx: Tx, accountId: string, name: string): Promise<boolean> {
    const { numDeletedRows } = await tx
      .deleteFrom('deployments')
      .where('name', '=', name)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Whose deployment has the name, and whether this server created it. Undefined if there is none. */
  async findOwner(
    tx: Tx,
    name: string,
  ): Promise<{ accountId: string; isOwn: boolean } | undefined> {
    const row = await tx
      .selectFrom('deployments')
      .select(['account_id', 'host_id'])
      .where('name', '=', name)
      .executeTakeFirst();
    return row && { accountId: row.account_id, isOwn: row.host_id === this.hostId };
  }

  /** The server whose configuration file has the deployment; undefined if none has. */
  async findFileServer(tx: Tx, accountId: string, name: string): Promise<string | undefined> {
    const row = await tx
      .selectFrom('deployments')
      .select('host_id')
      .where('name', '=', name)
      .where('account_id', '=', accountId)
      .where('in_file', '=', 1)
      .executeTakeFirst();
    return row?.host_id;
  }

  /** Those that this server created from its configuration file. */
  async namesInFile(tx: Tx): Promise<string[]> {
    const rows = await tx
      .selectFrom('deployments')
      .select('name')
      .where('host_id', '=', this.hostId)
      .where('in_file', '=', 1)
      .execute();
    return rows.map(({ name }) => name);
  }

  async insert(
    tx: Tx,
    accountId: string,
    name: string,
    spec: DeploymentSpec,
    inFile = false,
  ): Promise<void> {
    const id = newId();
    await tx
      .insertInto('deployments')
      .values({
        id,
        account_id: accountId,
        host_id: this.hostId,
        runner_id: this.hostId,
        name,
        ...this.#close(id, spec),
        previous: null,
        revision: 1,
        stopped: 0,
        in_file: Number(inFile),
        created_at: this.#clock.now(),
      })
      .execute();
  }

  /** Replaces the settings, and keeps the old ones for a rollback. Other engines make a new revision. */
  async replace(
    tx: Tx,
    before: Stored,
    spec: DeploymentSpec,
    inFile = before.inFile,
  ): Promise<void> {
    const revision = before.revision + (isSameEngine(before.spec, spec) ? 0 : 1);
    await tx
      .updateTable('deployments')
      .set((row) => ({
        ...this.#close(before.id, spec),
        previous: row.ref('spec'),
        revision,
        in_file: Number(inFile),
      }))
      .where('id', '=', before.id)
      .execute();
  }

  /** Returns the settings before the last change; undefined if there was none. */
  async previous(tx: Tx, { id }: Stored): Promise<DeploymentSpec | undefined> {
    const { previous } = await tx
      .selectFrom('deployments')
      .select('previous')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return previous === null ? undefined : this.#open(id, previous);
  }

  async setStopped(tx: Tx, { id }: Stored, isStopped: boolean): Promise<void> {
    await tx
      .updateTable('deployments')
      .set({ stopped: Number(isStopped) })
      .where('id', '=', id)
      .execute();
  }

  /** Leaves out what a server with another key wrote. */
  async #read(
    column: 'runner_id' | 'account_id',
    operator: '=' | '!=',
    value: string,
  ): Promise<Stored[]> {
    const rows = await this.#db
      .selectFrom('deployments')
      .selectAll()
      .where(column, operator, value)
      .orderBy('created_at')
      .orderBy('id')
      .execute();
    return rows.flatMap((row) => this.#tryToOpen(row) ?? []);
  }

  #tryToOpen(row: DeploymentRow): Stored | undefined {
    try {
      return this.#toStored(row);
    } catch {
      this.#log.error(
        { deployment: row.name },
        'a deployment was created by a server with another secret_key (MILLRACE_SECRET_KEY) and is not run',
      );
      return undefined;
    }
  }

  #close(id: string, spec: DeploymentSpec) {
    return { model_id: spec.model, spec: this.#seal.close(JSON.stringify(spec), id) };
  }

  #open(id: string, sealed: string): DeploymentSpec {
    return parseSpec(this.#seal.open(sealed, id));
  }

  #toStored(row: DeploymentRow): Stored {
    return {
      id: row.id,
      name: row.name,
      accountId: row.account_id,
      runnerId: row.runner_id,
      spec: this.#open(row.id, row.spec),
      revision: row.revision,
      isStopped: row.stopped === 1,
      canRollBack: row.previous !== null && row.in_file === 0,
      inFile: row.in_file === 1,
      createdAt: row.created_at,
    };
  }
}
