// Deployments as people read and change them. Changes are written as rows, which the servers then follow.

import type { FastifyBaseLogger } from 'fastify';
import type { Audit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import { readCost } from '#deployments/cost/cost-view.ts';
import type { DeploymentRuns } from '#deployments/cost/runs.ts';
import { findFlaw } from '#deployments/engines/engine-files.ts';
import type { Engines } from '#deployments/engines/engines.ts';
import type { Fits } from '#deployments/fits/fits.ts';
import {
  deploymentNameTaken,
  flawedEngine,
  inFile,
  inFileOf,
  noSuchDeployment,
  noSuchInstanceType,
  nothingToRollBack,
  onlyChatModels,
  serverSilent,
  tooManyDeployments,
} from '#deployments/ground/errors.ts';
import type { DeploymentRows, Stored } from '#deployments/ground/rows.ts';
import type {
  CostView,
  DeploymentChange,
  DeploymentView,
  NewDeployment,
} from '#deployments/ground/schema.ts';
import { changeSpec, type DeploymentSpec, isSameEngine, toSpec } from '#deployments/ground/spec.ts';
import type { LiveDeployments } from '#deployments/life/live-deployments.ts';
import type { ServerRows } from '#deployments/peers/server-rows.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { type Catalog, getModel } from '#inference/models/catalog.ts';
import type { Clock } from '#lib/clock.ts';
import { applyFile, type FileDeployments } from './file-deployments.ts';

export interface DeploymentsParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
  readonly audit: Audit;
  readonly catalog: Catalog;
  readonly rows: DeploymentRows;
  readonly runs: DeploymentRuns;
  readonly fits: Fits;
  readonly engines: Engines;
  readonly live: LiveDeployments;
  /** Price of a machine of the instance type. */
  hourlyCents(runsOn: string): number;
  /** Null if no other server uses the database. */
  readonly servers: ServerRows | null;
}

const maxDeployments = 200;

export class Deployments {
  readonly #parts: DeploymentsParts;
  readonly #live: LiveDeployments;
  /** The account of deployments that come from the configuration file. */
  #fileAccountId = '';

  constructor(parts: DeploymentsParts) {
    this.#parts = parts;
    this.#live = parts.live;
  }

  /** Adopts the machines of an earlier process, terminates those that no deployment wants, and starts what is missing. */
  async start(accountId: string, settings: FileDeployments): Promise<void> {
    this.#fileAccountId = accountId;
    await this.#live.start();
    await this.configure(settings);
    await this.#live.releaseUnwanted();
  }

  /** Applies the deployments of the configuration file. Those that left it are drained and removed. */
  async configure(settings: FileDeployments): Promise<void> {
    await this.#write(async (tx) => {
      const elsewhere = await applyFile(this.#parts, tx, this.#fileAccountId, settings);
      for (const deployment of elsewhere)
        this.#parts.log.warn(
          { deployment },
          'a deployment of the file was created by another server',
        );
    });
    for (const [name, given] of Object.entries(settings))
      await this.#check(toSpec({ name, ...given })).catch(({ message }: Error) => {
        this.#parts.log.warn({ deployment: name, reason: message }, 'a deployment will not start');
      });
  }

  /** Those of an account on every server. */
  async list(accountId: string): Promise<DeploymentView[]> {
    const all = await this.#parts.rows.ofAccount(accountId);
    return all.map((stored) => this.#live.view(stored));
  }

  async get(accountId: string, name: string): Promise<DeploymentView> {
    return this.#live.view(await this.#find(accountId, name));
  }

  /** The last lines that its engine printed. */
  async log(accountId: string, name: string): Promise<readonly string[]> {
    const { id } = await this.#find(accountId, name);
    return this.#live.log(id);
  }

  /** What it served and cost lately. */
  async cost(accountId: string, name: string): Promise<CostView> {
    return readCost(this.#parts, await this.#find(accountId, name));
  }

  /** What its replicas use now. */
  async stats(accountId: string, name: string): Promise<ReplicaStats[]> {
    const { id } = await this.#find(accountId, name);
    return [...(await this.#live.stats(id))];
  }

  async create(session: SessionPrincipal, input: NewDeployment): Promise<void> {
    const { rows, audit, catalog } = this.#parts;
    const { name } = input;
    const spec = this.#checkPlace(toSpec(input));
    getModel(catalog, spec.model);
    const { kind } = catalog.findById(spec.model) ?? {};
    if (kind === 'embedding' || kind === 'rerank') throw onlyChatModels(spec.model, kind);
    await this.#checkEngine(spec);
    await this.#write(async (tx) => {
      const stored = await tx.selectFrom('deployments').select('name').execute();
      if (stored.length >= maxDeployments) throw tooManyDeployments(maxDeployments);
      if (stored.some((row) => row.name === name)) throw deploymentNameTaken(name);
      await rows.insert(tx, session.accountId, name, spec);
      const details = { model: spec.model, engine: spec.engine };
      await audit.record(tx, session, { action: 'deployment.created', resourceId: name, details });
    });
  }

  async update(session: SessionPrincipal, name: string, change: DeploymentChange): Promise<void> {
    const { id, spec: before } = await this.#find(session.accountId, name);
    const after = changeSpec(before, change);
    if (!isSameEngine(before, after) && this.#live.find(id) !== undefined) await checkFiles(after);
    if (!isSameEngine(before, after) || before.target !== after.target)
      await this.#parts.fits.check(after);
    await this.#change(session, name, 'deployment.changed', async (tx, stored) => {
      await this.#refuseInFile(tx, session, name);
      await this.#parts.rows.replace(tx, stored, this.#checkPlace(changeSpec(stored.spec, change)));
    });
  }

  async rollBack(session: SessionPrincipal, name: string): Promise<void> {
    await this.#change(session, name, 'deployment.rolled_back', async (tx, stored) => {
      const { rows } = this.#parts;
      await this.#refuseInFile(tx, session, name);
      const previous: DeploymentSpec | undefined = await rows.previous(tx, stored);
      if (previous === undefined) throw nothingToRollBack(name);
      await rows.replace(tx, stored, previous);
    });
  }

  /** A start after failures tries again. */
  async setStopped(session: SessionPrincipal, name: string, isStopped: boolean): Promise<void> {
    const action = isStopped ? 'deployment.stopped' : 'deployment.started';
    const before = await this.#change(session, name, action, (tx, stored) =>
      this.#parts.rows.setStopped(tx, stored, isStopped),
    );
    // If it was stopped, its server sees that in the row.
    if (!isStopped && !before.isStopped && !(await this.#live.resetBackoff(before.id)))
      throw serverSilent(name);
  }

  async remove(session: SessionPrincipal, name: string): Promise<void> {
    const { rows, audit } = this.#parts;
    await this.#write(async (tx) => {
      await this.#refuseInFile(tx, session, name);
      if (!(await rows.remove(tx, session.accountId, name))) throw noSuchDeployment(name);
      await audit.record(tx, session, { action: 'deployment.removed', resourceId: name });
    });
  }

  /** Throws if the deployment would return with the next start of a server. The file of a lost one no longer counts. */
  async #refuseInFile(tx: Tx, { accountId }: SessionPrincipal, name: string): Promise<void> {
    const { rows, servers } = this.#parts;
    const id = await rows.findFileServer(tx, accountId, name);
    if (id === rows.hostId) throw inFile(name);
    const server = id === undefined ? null : await servers?.findRunning(tx, id);
    if (server != null) throw inFileOf(name, server);
  }

  async #find(accountId: string, name: string): Promise<Stored> {
    const all = await this.#parts.rows.ofAccount(accountId);
    const found = all.find((stored) => stored.name === name);
    if (found === undefined) throw noSuchDeployment(name);
    return found;
  }

  async #check(spec: DeploymentSpec): Promise<void> {
    await this.#checkEngine(this.#checkPlace(spec));
  }

  /** Throws if no engine can start on this server's computer, or if the model does not fit. */
  async #checkEngine(spec: DeploymentSpec): Promise<void> {
    await checkFiles(spec);
    await this.#parts.fits.check(spec);
  }

  /** Throws if there is no such instance type. */
  #checkPlace(spec: DeploymentSpec): DeploymentSpec {
    if (!this.#parts.engines.isPlace(spec.runs_on)) throw noSuchInstanceType(spec.runs_on);
    return spec;
  }

  /** Returns the deployment as it was. */
  async #change(
    session: SessionPrincipal,
    name: string,
    action:
      | 'deployment.changed'
      | 'deployment.rolled_back'
      | 'deployment.stopped'
      | 'deployment.started',
    act: (tx: Tx, stored: Stored) => Promise<void>,
  ): Promise<Stored> {
    const { rows, audit } = this.#parts;
    return this.#write(async (tx) => {
      const stored = await rows.find(tx, session.accountId, name);
      if (stored === undefined) throw noSuchDeployment(name);
      await act(tx, stored);
      await audit.record(tx, session, { action, resourceId: name });
      return stored;
    });
  }

  async #write<Result>(action: (tx: Tx) => Promise<Result>): Promise<Result> {
    const result = await this.#parts.db.transaction().execute(action);
    await this.#live.refresh();
    return result;
  }
}

async function checkFiles(spec: DeploymentSpec): Promise<void> {
  const flaw = await findFlaw(spec);
  if (flaw !== undefined) throw flawedEngine(flaw.setting, flaw.reason);
}
