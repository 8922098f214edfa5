// The deployments of this server: changes by people, written as rows, and the engines that run because of them.

import { EventEmitter, once } from 'node:events';
import type { FastifyBaseLogger } from 'fastify';
import type { Audit } from '#accounts/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { Database, Tx } from '#db/tables.ts';
import { readCost } from '#deployments/cost/cost-view.ts';
import type { DeploymentRuns } from '#deployments/cost/runs.ts';
import type { Engines } from '#deployments/engines/engines.ts';
import { createLiveness } from '#deployments/engines/liveness.ts';
import type { Fits } from '#deployments/fits/fits.ts';
import { RemoteDemand } from '#deployments/peers/remote-demand.ts';
import { RemoteDeployments } from '#deployments/peers/remote-deployments.ts';
import type { ServerRows } from '#deployments/peers/server-rows.ts';
import { takeOver } from '#deployments/peers/take-over.ts';
import { checkModel } from '#inference/backends/live.ts';
import type { BackendRegistry } from '#inference/backends/registry.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import type { Router } from '#inference/routing/router.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { Clock } from '#lib/clock.ts';
import { divideAll } from './demand.ts';
import {
  deploymentNameTaken,
  inFile,
  noSuchDeployment,
  noSuchInstanceType,
  nothingToRollBack,
  onlyChatModels,
  tooManyDeployments,
} from './errors.ts';
import { applyFile, type FileDeployments } from './file-deployments.ts';
import { LiveDeployment, type LiveParts } from './live-deployment.ts';
import type { StoredReplica } from './replica-rows.ts';
import type { DeploymentRows, Stored } from './rows.ts';
import type { CostView, DeploymentChange, NewDeployment } from './schema.ts';
import { changeSpec, type DeploymentSpec, isSameEngine, toSpec } from './spec.ts';

export interface DeploymentsParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
  readonly audit: Audit;
  readonly catalog: Catalog;
  readonly rows: DeploymentRows;
  readonly runs: DeploymentRuns;
  readonly fits: Fits;
  /** Price of a machine of the instance type. */
  hourlyCents(runsOn: string): number;
  readonly registry: BackendRegistry;
  readonly router: Router;
  readonly engines: Engines;
  /** Null if no other server uses the database. */
  readonly servers: ServerRows | null;
  /** Ends pulls of weights that no deployment needs any more. */
  endPulls(): Promise<void>;
}

export interface Shown {
  readonly stored: Stored;
  /** Undefined if another server runs it. */
  readonly live: LiveDeployment | undefined;
}

const maxDeployments = 200;

export class Deployments {
  readonly #parts: DeploymentsParts;
  readonly #live = new Map<string, LiveDeployment>();
  readonly #mutex = createKeyedMutex();
  readonly #liveParts: LiveParts;
  /** The account of deployments that come from the configuration file. */
  #fileAccountId = '';
  readonly #remotes: RemoteDeployments;
  readonly #demand: RemoteDemand;
  readonly #ticks = new EventEmitter().setMaxListeners(0);
  #isClosed = false;

  constructor(parts: DeploymentsParts) {
    const { clock, log, engines, registry, router } = parts;
    this.#parts = parts;
    this.#liveParts = {
      clock,
      engines,
      changed: () => this.tick(),
      failed: (reason) => log.warn({ reason }, 'the engine of a deployment failed'),
      couldNotRest: (reason) => log.warn({ reason }, 'an idle engine could not rest'),
      outstanding: (model, name) => registry.find(model, name)?.outstanding ?? 0,
      taken: (model, name) => registry.find(model, name)?.taken ?? 0,
      loadMs: (id) => parts.runs.loadMs(id),
      liveness: createLiveness(clock),
    };
    this.#demand = new RemoteDemand(clock);
    this.#remotes = new RemoteDeployments({
      clock,
      serverId: parts.servers?.id ?? '',
      changed: () => this.tick(),
      silent: (deployment, reason) =>
        log.warn({ deployment, reason }, 'the server of a deployment does not answer'),
    });
    router.onWaiting = (model) => {
      if (this.#runs(model) || this.#remotes.has(model)) this.tick();
    };
  }

  /** Adopts the machines of an earlier process, terminates those that no deployment wants, and starts what is missing. */
  async start(accountId: string, inFile: FileDeployments): Promise<void> {
    const { engines, runs, servers } = this.#parts;
    await runs.open();
    await engines.clean();
    this.#fileAccountId = accountId;
    await servers?.start();
    await this.configure(inFile);
    // Also if there is no deployment to adopt them.
    await this.#adoptable(new Set(this.#live.keys()));
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

  /** Those of an account on every server, with what this one runs. */
  async list(accountId: string): Promise<readonly Shown[]> {
    const all = await this.#parts.rows.ofAccount(accountId);
    return all.map((stored) => ({ stored, live: this.#live.get(stored.id) }));
  }

  async get(accountId: string, name: string): Promise<Shown> {
    const found = (await this.list(accountId)).find(({ stored }) => stored.name === name);
    if (found === undefined) throw noSuchDeployment(name);
    return found;
  }

  /** What it served and cost lately. */
  async cost(accountId: string, name: string): Promise<CostView> {
    const { stored } = await this.get(accountId, name);
    return readCost(this.#parts, stored);
  }

  /** Undefined if this server does not run it. */
  findLive(id: string): LiveDeployment | undefined {
    return this.#live.get(id);
  }

  /** What other servers say about the deployments that they run. */
  get remotes(): Pick<RemoteDeployments, 'findView' | 'findLog'> {
    return this.#remotes;
  }

  /** Requests for the deployment wait on another server. */
  noteDemand(id: string, serverId: string, waiting: number): void {
    this.#demand.set(id, serverId, waiting);
    this.tick();
  }

  /** Resolves after the next tick, at the latest after this time. */
  async nextTick(ms: number): Promise<void> {
    await once(this.#ticks, 'tick', { signal: AbortSignal.timeout(Math.ceil(ms)) }).catch(() => {});
  }

  #runs = (model: string) => [...this.#live.values()].some((live) => live.model === model);

  /** Requests for the model are this server's to serve. */
  #serves = (model: string) =>
    [...this.#live.values()].some(
      (live) => live.model === model && live.toShare() !== null && !live.hasFailed,
    );

  waiting(model: string): number {
    return this.#parts.router.queued(model);
  }

  async create(session: SessionPrincipal, input: NewDeployment): Promise<void> {
    const { rows, audit, catalog } = this.#parts;
    const { name } = input;
    const spec = this.#checkPlace(toSpec(input));
    checkModel(catalog, spec.model);
    const { kind } = catalog.findById(spec.model) ?? {};
    if (kind === 'embedding' || kind === 'rerank') throw onlyChatModels(spec.model, kind);
    await this.#parts.fits.check(spec);
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
    const { spec: before } = (await this.get(session.accountId, name)).stored;
    const after = changeSpec(before, change);
    if (!isSameEngine(before, after) || before.target !== after.target)
      await this.#parts.fits.check(after);
    await this.#change(session, name, 'deployment.changed', async (tx, stored) => {
      if (stored.inFile) throw inFile(name);
      await this.#parts.rows.replace(tx, stored, this.#checkPlace(changeSpec(stored.spec, change)));
    });
  }

  rollBack(session: SessionPrincipal, name: string): Promise<void> {
    return this.#change(session, name, 'deployment.rolled_back', async (tx, stored) => {
      const { rows } = this.#parts;
      if (stored.inFile) throw inFile(name);
      const previous: DeploymentSpec | undefined = await rows.previous(tx, stored);
      if (previous === undefined) throw nothingToRollBack(name);
      await rows.replace(tx, stored, previous);
    });
  }

  /** A start after failures tries again. */
  async setStopped(session: SessionPrincipal, name: string, isStopped: boolean): Promise<void> {
    const action = isStopped ? 'deployment.stopped' : 'deployment.started';
    await this.#change(session, name, action, async (tx, stored) => {
      await this.#parts.rows.setStopped(tx, stored, isStopped);
      if (!isStopped) this.#live.get(stored.id)?.forgive();
    });
  }

  async remove(session: SessionPrincipal, name: string): Promise<void> {
    const { rows, audit } = this.#parts;
    await this.#write(async (tx) => {
      if ((await rows.namesInFile(tx)).includes(name)) throw inFile(name);
      if (!(await rows.remove(tx, session.accountId, name))) throw noSuchDeployment(name);
      await audit.record(tx, session, { action: 'deployment.removed', resourceId: name });
    });
  }

  /** Reads the rows, which another server may have changed. Must be called about every 5 seconds. */
  refresh(): Promise<void> {
    return this.#mutex.run('refresh', async () => {
      const { rows, log } = this.#parts;
      const { others, peers, lost, taken } = await this.#readOthers();
      const stored = await rows.own();
      const ids = new Set(stored.map(({ id }) => id));
      const existing = await rows.findExisting([...this.#live.keys()].filter((id) => !ids.has(id)));
      const isAdded = (id: string) => !this.#live.has(id) || taken.has(id);
      const left = stored.some(({ id }) => isAdded(id)) ? await this.#adoptable(ids) : [];
      if (this.#isClosed) return;
      // One that was lost and taken over again has other replicas by now.
      for (const [id, live] of this.#live)
        if (taken.has(id) || existing.has(id)) this.#leave(id, live);
        else if (!ids.has(id)) live.remove();
      for (const one of stored) {
        const live = this.#live.get(one.id);
        if (live !== undefined) live.set(one);
        else this.#live.set(one.id, this.#open(one, left));
      }
      this.#remotes.set(
        others.filter(({ id }) => !ids.has(id)),
        peers,
        lost,
      );
      this.tick();
      // After replicas that waited for a pull were told to stop.
      await this.#parts.endPulls().catch((err) => log.warn({ err }, 'pulls were not ended'));
    });
  }

  /** Replicas on machines of these deployments, launched by an earlier process or another server. The rest is terminated. */
  async #adoptable(ids: ReadonlySet<string>): Promise<readonly StoredReplica[]> {
    const { engines } = this.#parts;
    const left = await engines.findLeft();
    const isWanted = ({ deploymentId, settings }: StoredReplica) =>
      settings !== null && (ids.has(deploymentId) || this.#live.has(deploymentId));
    for (const replica of left) if (!isWanted(replica)) await engines.release(replica);
    return left.filter(isWanted);
  }

  /** Takes over the deployments on machines whose server is lost, and finds those that other servers run. */
  async #readOthers() {
    const { servers, rows, engines } = this.#parts;
    const none = new Set<string>();
    if (servers === null || this.#isClosed)
      return { others: [], peers: [], lost: none, taken: none };
    const others = await rows.ofOthers();
    const found = await servers.findLostAndPeers(others.map(({ runnerId }) => runnerId));
    const taken = await takeOver(this.#parts, others, found.lost);
    if ((await engines.takeOrphans(found.lost)) > 0)
      await this.#adoptable(new Set((await rows.own()).map(({ id }) => id)));
    return { others, ...found, taken };
  }

  /** Another server runs it now. */
  #leave(id: string, live: LiveDeployment): void {
    this.#live.delete(id);
    this.#parts.runs.forget(id);
    void live.leave();
  }

  /** Must be called about once a second. It reads no database. */
  tick(): void {
    if (this.#isClosed) return;
    const waiting = divideAll([...this.#live.values()], (model) => this.waiting(model));
    for (const live of this.#live.values())
      live.tick((waiting.get(live.name) ?? 0) + this.#demand.of(live.id));
    this.#remotes.tick((model) => (this.#serves(model) ? 0 : this.waiting(model)));
    this.#publish();
    this.#ticks.emit('tick');
    this.#recordRuns();
    const gone = [...this.#live].filter(([, live]) => live.isGone);
    if (gone.length === 0) return;
    // Only now: what waited for a removed deployment was told so.
    for (const [id] of gone) {
      this.#live.delete(id);
      this.#parts.runs.forget(id);
    }
    this.sweep().catch((err) => this.#parts.log.warn({ err }, 'old weights were not removed'));
    this.#publish();
  }

  #publish(): void {
    const { registry, router } = this.#parts;
    const own = [...this.#live.values()].map((live) => live.toModel());
    if (registry.setDeployed([...own, ...this.#remotes.toModels()])) router.recheck();
  }

  #recordRuns(): void {
    const { runs, log } = this.#parts;
    for (const live of this.#live.values())
      runs.observe(live.id, live.replicas(), this.#parts.hourlyCents(live.runsOn));
    if (runs.isDue)
      runs.save().catch((err) => log.error({ err }, 'run times of replicas were not saved'));
  }

  /** Deletes what is no longer needed. Must be called about once an hour. */
  async sweep(): Promise<void> {
    await this.#parts.runs.sweep();
    await this.#parts.engines.sweepWeights(await this.#parts.rows.own());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#live.values()].map((live) => live.leave()));
    this.#recordRuns();
    await this.#parts.runs.save().catch(() => {});
    await this.#parts.servers?.leave().catch(() => {});
  }

  #open(stored: Stored, left: readonly StoredReplica[]): LiveDeployment {
    const own = left.filter(({ deploymentId }) => deploymentId === stored.id);
    return new LiveDeployment(this.#liveParts, stored, own);
  }

  async #check(spec: DeploymentSpec): Promise<void> {
    await this.#parts.fits.check(this.#checkPlace(spec));
  }

  /** Throws if there is no such instance type. */
  #checkPlace(spec: DeploymentSpec): DeploymentSpec {
    if (!this.#parts.engines.isPlace(spec.runs_on)) throw noSuchInstanceType(spec.runs_on);
    return spec;
  }

  async #change(
    session: SessionPrincipal,
    name: string,
    action:
      | 'deployment.changed'
      | 'deployment.rolled_back'
      | 'deployment.stopped'
      | 'deployment.started',
    act: (tx: Tx, stored: Stored) => Promise<void>,
  ): Promise<void> {
    const { rows, audit } = this.#parts;
    await this.#write(async (tx) => {
      const stored = await rows.find(tx, session.accountId, name);
      if (stored === undefined) throw noSuchDeployment(name);
      await act(tx, stored);
      await audit.record(tx, session, { action, resourceId: name });
    });
  }

  async #write(action: (tx: Tx) => Promise<void>): Promise<void> {
    await this.#parts.db.transaction().execute(action);
    await this.refresh();
  }
}
