// A deployment that this server runs: its replicas, how often its starts failed in a row, and what the registry of
// backends is given for it.

import { hasNewRequests, type Share } from '#deployments/decision/demand.ts';
import { decide, type ReplicaFacts, toDesired } from '#deployments/decision/scale.ts';
import { createSchedule, type Schedule } from '#deployments/decision/schedule.ts';
import { type StartWatch, toFailure } from '#deployments/engines/engine.ts';
import type { Engines } from '#deployments/engines/engines.ts';
import type { HealthTarget, Liveness } from '#deployments/engines/liveness.ts';
import { recipes } from '#deployments/engines/recipes.ts';
import { toStep } from '#deployments/ground/ladder.ts';
import type { StoredReplica } from '#deployments/ground/replica-rows.ts';
import type { Stored } from '#deployments/ground/rows.ts';
import { toHoldLimits } from '#deployments/ground/spec.ts';
import { measureReplica } from '#deployments/stats/replica-stats.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';
import { newId } from '#lib/ids.ts';
import { Failures } from './failures.ts';
import { Replica, type ReplicaParts } from './replica.ts';

export interface LiveParts extends ReplicaParts {
  /** Running requests of the backend. */
  outstanding(model: string, backend: string): number;
  /** Requests that the backend has been given so far. */
  taken(model: string, backend: string): number;
  /** How long a start of the deployment takes, in milliseconds; null if it is not known. */
  loadMs(deploymentId: string): number | null;
  readonly liveness: Liveness;
  readonly engines: Engines;
}

/** How long a launch of a machine usually takes, before one was measured. */
const launchMs = 10_000;
/** How long running requests of a replica that is removed may take. */
const maxDrainMs = 600_000;

interface Drain {
  readonly since: number;
  /** Since when the replica was not needed; null if it is removed whatever the ladder says. */
  readonly idleSince: number | null;
}

export class LiveDeployment {
  readonly #parts: LiveParts;
  #stored: Stored;
  #schedule: Schedule;
  #replicas: Replica[] = [];
  #draining = new Map<Replica, Drain>();
  /** Replicas whose last health check failed. */
  #suspects: ReadonlySet<Replica> = new Set();
  #surplusSince: number | null = null;
  /** Requests that each replica had been given at the last tick, by its id. */
  #taken: ReadonlyMap<string, number> = new Map();
  readonly #failures = new Failures();
  /** Replicas that the requests need. */
  wanted = 0;
  /** Requests that wait for a replica. */
  held = 0;
  isRemoved = false;

  /** `left` are replicas that an earlier process launched. */
  constructor(parts: LiveParts, stored: Stored, left: readonly StoredReplica[] = []) {
    this.#parts = parts;
    this.#stored = stored;
    this.#schedule = createSchedule(stored.spec.schedule);
    for (const replica of left) this.#adopt(replica);
  }

  get stored(): Stored {
    return this.#stored;
  }

  get id(): string {
    return this.#stored.id;
  }

  get name(): string {
    return this.#stored.name;
  }

  get model(): string {
    return this.#stored.spec.model;
  }

  /** Where new replicas start. */
  get runsOn(): string {
    return this.#stored.spec.runs_on;
  }

  /** The minimum of replicas now. A scheduled one applies early enough for replicas to be ready when its time begins. */
  get min(): number {
    const { spec } = this.#stored;
    const now = this.#parts.clock.now();
    const readyAt = now + (this.#parts.loadMs(this.id) ?? 0);
    return Math.max(spec.min, this.#schedule(now), this.#schedule(readyAt));
  }

  /** True if it was removed and nothing of it is left. */
  get isGone(): boolean {
    return this.isRemoved && this.#replicas.length === 0;
  }

  get hasFailed(): boolean {
    return this.#failures.arePermanent;
  }

  /** Why the last start failed; null if it did not. */
  get reason(): string | null {
    return this.#failures.last?.reason ?? null;
  }

  /** Replicas that failed since this server started. */
  get failedReplicas(): number {
    return this.#failures.total;
  }

  replicas(): readonly ReplicaFacts[] {
    return this.#replicas.map((replica) => ({
      id: replica.id,
      revision: replica.revision,
      state: replica.state,
      isWaiting: replica.isWaiting,
      outstanding: this.#outstanding(replica),
      startedAt: replica.startedAt,
      loadingSince: replica.loadingSince,
      readyAt: replica.readyAt,
      idleSince: replica.idleSince,
    }));
  }

  /** What the replica does while it starts, read from its log; null once it has started. */
  progressOf(id: string): string | null {
    return this.#replicas.find((replica) => replica.id === id)?.progress() ?? null;
  }

  /** Id of the instance that the replica runs on; null if it is a process. */
  instanceOf(id: string): string | null {
    const replica = this.#replicas.find((one) => one.id === id);
    return replica === undefined || replica.spec.runs_on === 'host' ? null : id;
  }

  /** Its share of the model's requests; null if it takes none. */
  toShare(): Share | null {
    const { name, spec, isStopped } = this.#stored;
    if (isStopped || this.isRemoved) return null;
    const all = this.#replicas.filter(({ state }) => state === 'starting' || state === 'ready');
    const live = all.filter(({ isWaiting }) => !isWaiting);
    const queued = all.length - live.length;
    // Another deployment may have a free machine.
    const max = this.hasFailed || queued > 0 ? Math.min(live.length, spec.max) : spec.max;
    return {
      name,
      weight: spec.weight,
      target: spec.target,
      replicas: Math.min(max, Math.max(this.min, live.length)),
      queued,
      max,
      running: live.reduce((sum, replica) => sum + this.#outstanding(replica), 0),
    };
  }

  /** The log of the newest replica of the current revision, of the last one that failed, or of an older revision. */
  log(): readonly string[] {
    const { revision } = this.#stored;
    const newest = this.#replicas.findLast((replica) => replica.revision === revision);
    if (newest !== undefined) return newest.log();
    return this.reason === null ? (this.#replicas.at(-1)?.log() ?? []) : this.#failures.log;
  }

  /** What its replicas use now. Those without an engine are left out. */
  stats(): Promise<ReplicaStats[]> {
    const measured = this.#replicas.flatMap(({ id, engine }) =>
      engine === undefined ? [] : measureReplica(id, engine),
    );
    return Promise.all(measured);
  }

  set(stored: Stored): void {
    const isChanged = stored.revision !== this.#stored.revision;
    const isResumed = this.#stored.isStopped && !stored.isStopped;
    this.#stored = stored;
    this.#schedule = createSchedule(stored.spec.schedule);
    if (isChanged || isResumed) this.resetBackoff();
  }

  /** Lets it start again after failures. */
  resetBackoff(): void {
    this.#failures.reset();
  }

  remove(): void {
    this.isRemoved = true;
  }

  /** Starts, wakes, drains, rests and stops replicas as the requests demand. `waiting` is its part of those that wait. */
  tick(waiting: number): void {
    const { clock } = this.#parts;
    const now = clock.now();
    this.#removeEnded(now);
    this.#stopDead(now);
    const { spec, revision, isStopped } = this.#stored;
    const replicas = this.replicas();
    const running = replicas.reduce((sum, { outstanding }) => sum + outstanding, 0);
    const hasNewRequests = this.#hasNewRequests();
    const idleSince = this.#surplusSince;
    const scaling = { min: this.min, max: spec.max, target: spec.target, ladder: spec.ladder };
    const isEnding = isStopped || this.isRemoved;
    this.held = waiting;
    this.wanted = isEnding ? 0 : toDesired(scaling, running + waiting);
    const { start, surplusSince, ...ids } = decide(scaling, {
      revision,
      hasFailed: !this.#failures.mayStart(now),
      isStopped: isEnding,
      running: hasNewRequests ? Math.max(1, running) : running,
      waiting,
      replicas,
      surplusSince: idleSince,
      now,
    });
    // After requests that have ended by now, the idle time begins.
    this.#surplusSince = surplusSince ?? (hasNewRequests && running === 0 ? now : null);
    for (let count = 0; count < start; count++) this.#start(now);
    for (const replica of this.#replicas) {
      const { id } = replica;
      if (ids.drain.includes(id)) this.#drain(replica, now, null);
      if (ids.rest.includes(id)) this.#drain(replica, now, idleSince);
      if (ids.stop.includes(id)) this.#rest(replica, now, replica.idleSince);
      if (ids.resume.includes(id)) this.#resume(replica);
      if (ids.wake.includes(id)) replica.wake(now);
    }
    this.#stopDrained(now);
  }

  /** Since the last tick. Most requests begin and end between two ticks. */
  #hasNewRequests(): boolean {
    const before = this.#taken;
    this.#taken = new Map(
      this.#replicas.map((one) => [one.id, this.#parts.taken(one.spec.model, this.#nameOf(one))]),
    );
    return hasNewRequests(before, this.#taken);
  }

  /** What the registry of backends is given. */
  toModel(): DeployedModel {
    const { name, spec } = this.#stored;
    const taking = this.#replicas.filter(({ state }) => state === 'ready' || state === 'draining');
    const isReady = taking.some((one) => one.state === 'ready' && !this.#suspects.has(one));
    return {
      model: spec.model,
      name,
      backends: taking.map((replica) => ({
        spec: replica.toBackend(this.#nameOf(replica)),
        isDraining: replica.state === 'draining',
      })),
      hold: isReady
        ? null
        : {
            ...toHoldLimits(spec),
            obstacle: this.#obstacle,
            readyBy: this.#readyBy,
            progress: this.#progress,
          },
    };
  }

  /** This server ends. Replicas on machines go on. */
  async leave(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.leave()));
  }

  get #obstacle(): string | null {
    const { name, isStopped } = this.#stored;
    if (this.isRemoved) return `The deployment ${name} was removed.`;
    if (isStopped) return `The deployment ${name} is stopped. An owner can start it again.`;
    const { last } = this.#failures;
    if (!this.hasFailed || last === null) return null;
    const { publicMessage, reason } = last;
    const where =
      publicMessage === reason
        ? 'Owners see its log on its page in the dashboard.'
        : 'Its page in the dashboard has the reason.';
    return `The deployment ${name} failed. ${publicMessage} ${where}`;
  }

  /** When the first replica of those that are starting, or the next one that starts, will probably be ready. */
  #readyBy = (): number => {
    const { engine, runs_on } = this.#stored.spec;
    const usualMs = recipes[engine].loadMs + (runs_on === 'host' ? 0 : launchMs);
    const loadMs = this.#parts.loadMs(this.id) ?? usualMs;
    const starting = this.#replicas.filter(({ state }) => state === 'starting');
    if (starting.length === 0) return this.#parts.clock.now() + loadMs;
    return Math.min(...starting.map((replica) => replica.readyBy(loadMs)));
  };

  #progress = () => this.#replicas.find(({ state }) => state === 'starting')?.progress() ?? null;

  #nameOf = ({ id }: Replica) => `${this.#stored.name}-${id.slice(0, 8)}`;

  #outstanding = (replica: Replica) =>
    this.#parts.outstanding(replica.spec.model, this.#nameOf(replica));

  #start(startedAt: number): void {
    const deployment = this.#stored;
    const { spec, revision } = deployment;
    const id = newId();
    const start = (watch: StartWatch) =>
      this.#parts.engines.start({ id, deployment, revision, spec }, watch);
    const parts = this.#partsOf(id, this.#failures.nextAttempt);
    parts.log.info({ revision }, 'a replica starts');
    this.#replicas.push(new Replica(parts, { id, spec, revision, startedAt, start }));
  }

  /** The log lines of a replica name it. */
  #partsOf(replica: string, attempt: number): ReplicaParts {
    const { name: deployment } = this.#stored;
    const log = this.#parts.log.child({ deployment, replica, attempt });
    return { ...this.#parts, log };
  }

  #adopt(replica: StoredReplica): void {
    const { id, revision, startedAt, readyAt, rest, settings } = replica;
    if (settings === null) return;
    const start = () => this.#parts.engines.adopt(replica);
    const order = { id, spec: settings.spec, revision, startedAt, readyAt, rest, start };
    this.#replicas.push(new Replica(this.#partsOf(id, 1), order));
  }

  #drain(replica: Replica, now: number, idleSince: number | null): void {
    // It is being removed already.
    if (this.#draining.get(replica)?.idleSince === null) return;
    const hasNone = replica.readyAt === null || replica.idleSince !== null;
    replica.drain();
    if (hasNone) void replica.stop();
    else this.#draining.set(replica, { since: now, idleSince });
  }

  /** Takes the step of the ladder that is due. */
  #rest(replica: Replica, now: number, idleSince: number | null): void {
    const step = idleSince === null ? 'gone' : toStep(this.#stored.spec.ladder, now - idleSince);
    if (step === null) replica.resume();
    else if (step === 'gone' || idleSince === null) void replica.stop();
    else replica.rest({ step, idleSince });
  }

  #resume(replica: Replica): void {
    replica.resume();
    this.#draining.delete(replica);
  }

  #stopDrained(now: number): void {
    for (const [replica, { since, idleSince }] of this.#draining) {
      // A request may have chosen the replica just before, so it is only stopped in a later tick.
      if (since === now) continue;
      // Nothing hurries a replica that is only to rest.
      const mayFinish = idleSince !== null || now - since < maxDrainMs;
      if (mayFinish && this.#outstanding(replica) > 0) continue;
      this.#draining.delete(replica);
      this.#rest(replica, now, idleSince);
    }
  }

  /** Stops ready replicas that no longer answer. Their requests go to others. */
  #stopDead(now: number): void {
    const { liveness } = this.#parts;
    const suspects = new Set<Replica>();
    for (const replica of this.#replicas.filter(({ state }) => state === 'ready')) {
      const state = liveness.check(replica, () => this.#toHealthTarget(replica));
      if (state === 'suspect') suspects.add(replica);
      if (state !== 'dead') continue;
      const failure = toFailure('The engine ran, but stopped answering.');
      this.#failures.add(now, replica, failure);
      replica.logFailure(failure);
      void replica.stop();
    }
    this.#suspects = suspects;
  }

  #toHealthTarget(replica: Replica): HealthTarget {
    const { url, apiKey } = replica.toBackend(this.#nameOf(replica));
    return { url: new URL(recipes[replica.spec.engine].health, url).href, key: apiKey };
  }

  #removeEnded(now: number): void {
    const ended = this.#replicas.filter(({ hasEnded }) => hasEnded);
    for (const replica of ended) {
      this.#draining.delete(replica);
      if (replica.failure === null || replica.revision !== this.#stored.revision) continue;
      this.#failures.add(now, replica, replica.failure);
    }
    this.#replicas = this.#replicas.filter(({ hasEnded }) => !hasEnded);
    const current = this.#replicas.filter(({ revision }) => revision === this.#stored.revision);
    this.#failures.forgetIfSound(now, current);
  }
}
