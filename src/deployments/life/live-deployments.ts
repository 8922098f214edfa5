// The deployments that this server runs, as the rows say, and what it knows about those of other servers.

import { EventEmitter, once } from 'node:events';
import type { FastifyBaseLogger } from 'fastify';
import type { DeploymentRuns } from '#deployments/cost/runs.ts';
import { divideAll } from '#deployments/decision/demand.ts';
import type { Engines } from '#deployments/engines/engines.ts';
import { createLiveness } from '#deployments/engines/liveness.ts';
import type { StoredReplica } from '#deployments/ground/replica-rows.ts';
import type { DeploymentRows, Stored } from '#deployments/ground/rows.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { RemoteDemand } from '#deployments/peers/remote-demand.ts';
import { RemoteDeployments } from '#deployments/peers/remote-deployments.ts';
import type { ServerRows } from '#deployments/peers/server-rows.ts';
import { takeOver } from '#deployments/peers/take-over.ts';
import { toUnknown } from '#deployments/stats/replica-stats.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import type { BackendRegistry } from '#inference/backends/registry.ts';
import type { Router } from '#inference/routing/router.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import { PacedTask } from '#lib/async/paced-task.ts';
import type { Clock } from '#lib/clock.ts';
import { LiveDeployment, type LiveParts } from './live-deployment.ts';
import { toSettingsView, toView } from './view.ts';

export interface LiveDeploymentsParts {
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
  readonly rows: DeploymentRows;
  readonly runs: DeploymentRuns;
  readonly engines: Engines;
  readonly registry: BackendRegistry;
  readonly router: Router;
  /** Null if no other server uses the database. */
  readonly servers: ServerRows | null;
  /** Price of a machine of the instance type. */
  hourlyCents(runsOn: string): number;
  /** Ends pulls of weights that no deployment needs any more. */
  endPulls(): Promise<void>;
}

/** How often a model is looked at while its requests fail. The first one is looked at immediately. */
const suspectEveryMs = 250;

export class LiveDeployments {
  readonly #parts: LiveDeploymentsParts;
  /** By id. */
  readonly #all = new Map<string, LiveDeployment>();
  readonly #mutex = createKeyedMutex();
  readonly #liveParts: LiveParts;
  readonly #remotes: RemoteDeployments;
  readonly #demand: RemoteDemand;
  readonly #ticks = new EventEmitter().setMaxListeners(0);
  #isClosed = false;

  constructor(parts: LiveDeploymentsParts) {
    const { clock, log, engines, registry, router } = parts;
    this.#parts = parts;
    this.#liveParts = {
      clock,
      engines,
      changed: () => this.tick(),
      log,
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
      silent: (deployment, err) =>
        log.warn({ deployment, err }, 'the server of a deployment does not answer'),
    });
    router.onWaiting = (model) => {
      if (this.#runs(model) || this.#remotes.has(model)) this.tick();
    };
    const suspect = new PacedTask(suspectEveryMs, (model) => {
      this.#remotes.suspect(model);
      this.tick();
    });
    registry.onSuspect = (model) => suspect.wake(model);
  }

  /** Must be called before `refresh`. */
  async start(): Promise<void> {
    const { engines, runs, servers } = this.#parts;
    await runs.open();
    await engines.clean();
    await servers?.start();
  }

  /** Those that this server runs. */
  all(): readonly LiveDeployment[] {
    return [...this.#all.values()];
  }

  /** Undefined if this server does not run it. */
  find(id: string): LiveDeployment | undefined {
    return this.#all.get(id);
  }

  view(stored: Stored): DeploymentView {
    const live = this.#all.get(stored.id);
    const remote = live === undefined ? this.#remotes.findView(stored.id) : null;
    // Its server knows the replicas. The settings that it has told may be older than the row.
    return remote === null
      ? toView(stored, live, this.#waiting(stored.spec.model))
      : { ...remote, ...toSettingsView(stored) };
  }

  /** The last lines that its engine printed. */
  async log(id: string): Promise<readonly string[]> {
    return this.#all.get(id)?.log() ?? this.#remotes.findLog(id);
  }

  /** What its replicas use now, measured by the server that runs them. */
  async stats(id: string): Promise<readonly ReplicaStats[]> {
    const stats = await (this.#all.get(id)?.stats() ?? this.#remotes.findStats(id));
    if (stats !== null) return stats;
    const known = this.#remotes.findView(id)?.replicas ?? [];
    return known.map((replica) =>
      toUnknown(replica.id, 'The server that runs it does not answer.'),
    );
  }

  /** Lets it start again after failures. Returns false if another server runs it and does not answer. */
  async resetBackoff(id: string): Promise<boolean> {
    const live = this.#all.get(id);
    if (live === undefined) return this.#remotes.resetBackoff(id);
    live.resetBackoff();
    this.tick();
    return true;
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

  #runs = (model: string) => [...this.#all.values()].some((live) => live.model === model);

  /** Requests for the model are this server's to serve. */
  #serves = (model: string) =>
    [...this.#all.values()].some(
      (live) => live.model === model && live.toShare() !== null && !live.hasFailed,
    );

  #waiting = (model: string) => this.#parts.router.queued(model);

  /** Reads the rows, which another server may have changed. Must be called about every 5 seconds. */
  refresh(): Promise<void> {
    return this.#mutex.run('refresh', async () => {
      const { rows, log } = this.#parts;
      const { others, peers, lost, taken } = await this.#readOthers();
      const stored = await rows.own();
      const ids = new Set(stored.map(({ id }) => id));
      const existing = await rows.findExisting([...this.#all.keys()].filter((id) => !ids.has(id)));
      const isAdded = (id: string) => !this.#all.has(id) || taken.has(id);
      const left = stored.some(({ id }) => isAdded(id)) ? await this.#adoptable(ids) : [];
      if (this.#isClosed) return;
      // One that was lost and taken over again has other replicas by now.
      for (const [id, live] of this.#all)
        if (taken.has(id) || existing.has(id)) this.#leave(id, live);
        else if (!ids.has(id)) live.remove();
      for (const one of stored) {
        const live = this.#all.get(one.id);
        if (live !== undefined) live.set(one);
        else this.#all.set(one.id, this.#open(one, left));
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

  /** Terminates machines of an earlier process that no deployment wants. */
  async releaseUnwanted(): Promise<void> {
    await this.#adoptable(new Set());
  }

  /** Replicas on machines of these deployments, launched by an earlier process or another server. The rest is terminated. */
  async #adoptable(ids: ReadonlySet<string>): Promise<readonly StoredReplica[]> {
    const { engines } = this.#parts;
    const left = await engines.findLeft();
    const isWanted = ({ deploymentId, settings }: StoredReplica) =>
      settings !== null && (ids.has(deploymentId) || this.#all.has(deploymentId));
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
    this.#forget(id);
    void live.leave();
  }

  #forget(id: string): void {
    this.#all.delete(id);
    this.#demand.forget(id);
    this.#parts.runs.forget(id);
  }

  /** Must be called about once a second. It reads no database. */
  tick(): void {
    if (this.#isClosed) return;
    const waiting = divideAll([...this.#all.values()], this.#waiting);
    for (const live of this.#all.values())
      live.tick((waiting.get(live.name) ?? 0) + this.#demand.of(live.id));
    this.#remotes.tick((model) => ({
      waiting: this.#serves(model) ? 0 : this.#waiting(model),
      isUsed: this.#parts.registry.forModel(model).some(({ outstanding }) => outstanding > 0),
    }));
    this.#publish();
    this.#ticks.emit('tick');
    this.#recordRuns();
    const gone = [...this.#all].filter(([, live]) => live.isGone);
    if (gone.length === 0) return;
    // Only now: what waited for a removed deployment was told so.
    for (const [id] of gone) this.#forget(id);
    this.sweep().catch((err) => this.#parts.log.warn({ err }, 'old weights were not removed'));
    this.#publish();
  }

  #publish(): void {
    const { registry, router } = this.#parts;
    // Requests are told the obstacle of the first one. What another deployment lacks matters more than that one was removed.
    const lastRemoved = [...this.#all.values()].toSorted(
      (one, other) => Number(one.isRemoved) - Number(other.isRemoved),
    );
    const own = lastRemoved.map((live) => live.toModel());
    if (registry.setDeployed([...own, ...this.#remotes.toModels()])) router.recheck();
  }

  #recordRuns(): void {
    const { runs, log } = this.#parts;
    for (const live of this.#all.values())
      runs.observe(live.id, live.replicas(), () => this.#parts.hourlyCents(live.runsOn));
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
    await Promise.all([...this.#all.values()].map((live) => live.leave()));
    this.#recordRuns();
    await this.#parts.runs.save().catch(() => {});
    await this.#parts.servers?.leave().catch(() => {});
  }

  #open(stored: Stored, left: readonly StoredReplica[]): LiveDeployment {
    const own = left.filter(({ deploymentId }) => deploymentId === stored.id);
    return new LiveDeployment(this.#liveParts, stored, own);
  }
}
