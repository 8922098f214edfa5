// One replica of a deployment: an engine that starts, answers, takes requests until it is drained, and may rest and wake.
// It is ready when it has generated a token, not when its port is open.

import type { FastifyBaseLogger } from 'fastify';
import type { ReplicaFacts } from '#deployments/decision/scale.ts';
import {
  type Engine,
  type Failure,
  type StartWatch,
  toFailure,
} from '#deployments/engines/engine.ts';
import { FlawedStart } from '#deployments/engines/engine-files.ts';
import { scriptProgress } from '#deployments/engines/engine-script.ts';
import { probe } from '#deployments/engines/probe.ts';
import { findFailure, type Recipe, recipes } from '#deployments/engines/recipes.ts';
import { toUpstream } from '#deployments/engines/upstream.ts';
import type { Rest } from '#deployments/ground/ladder.ts';
import { sleeps } from '#deployments/ground/sleep.ts';
import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import type { UpstreamSpec } from '#inference/backends/spec.ts';
import type { Clock } from '#lib/clock.ts';

export interface ReplicaParts {
  readonly clock: Clock;
  /** Called when the replica is ready, and when it has ended. */
  changed(): void;
  readonly log: FastifyBaseLogger;
}

export interface ReplicaOrder {
  readonly id: string;
  readonly spec: DeploymentSpec;
  readonly revision: number;
  readonly startedAt: number;
  /** When an engine that is adopted answered first. */
  readonly readyAt?: number | null;
  /** How an engine that is adopted rests; null if it does not. */
  readonly rest?: Rest | null;
  /** Starts the engine, or adopts one that runs. Rejects with a sentence if it can't. */
  start(watch: StartWatch): Promise<Engine>;
}

const probeEveryMs = 100;
/** How long an engine that is asleep usually takes to wake. */
const wakeMs = 3_000;
const shownLines = 50;
/** How long an engine that was adopted may take to answer, however long ago it was started. */
const adoptionMs = 30_000;

export class Replica {
  readonly id: string;
  readonly revision: number;
  readonly startedAt: number;
  readonly spec: DeploymentSpec;
  readonly #recipe: Recipe;
  readonly #parts: ReplicaParts;
  readonly #done: Promise<void>;
  /** Ends a start that has no engine yet. */
  readonly #abort = new AbortController();
  #phase = 'starting';
  #loadingSince: number;
  /** How long it will probably take from then on until the engine can load. */
  #beforeLoadMs = 0;
  /** Aborted when the engine has ended. */
  readonly #over = new AbortController();
  readonly #opened = Promise.withResolvers<Engine>();
  /** Resolved with a sentence if the engine runs but is of no use. */
  readonly #broken = Promise.withResolvers<Failure>();
  /** Starts, sleeps and wakes follow each other. */
  #actions: Promise<void> = Promise.resolve();
  #engine: Engine | null = null;
  #state: ReplicaFacts['state'] = 'starting';
  #readyAt: number | null = null;
  #rest: Rest | null = null;
  #isWaking = false;
  /** True if its engine was told to end, or its machine was adopted with such an engine. */
  #isHalted = false;
  #isWaiting = false;
  #ending: 'stop' | 'leave' | null = null;
  /** What came of the last attempt to generate a token, as a sentence. */
  #lastProbe = '';
  /** Why it ended by itself; null while it runs and after it was stopped. */
  failure: Failure | null = null;
  hasEnded = false;

  constructor(parts: ReplicaParts, order: ReplicaOrder) {
    const { id, spec, revision, startedAt, readyAt = null, rest = null } = order;
    this.id = id;
    this.#parts = parts;
    this.spec = spec;
    this.revision = revision;
    this.startedAt = startedAt;
    this.#loadingSince = startedAt;
    this.#recipe = recipes[spec.engine];
    this.#done = this.#run(order);
    if (rest === null) this.#act((engine) => this.#getReady(engine, readyAt));
    else this.#adoptResting(rest, readyAt);
  }

  get state(): ReplicaFacts['state'] {
    return this.#state;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  get loadingSince(): number {
    return this.#loadingSince;
  }

  /** When it will probably be ready, if its engine loads for this long. A start that takes longer takes longer still. */
  readyBy(loadMs: number): number {
    const now = this.#parts.clock.now();
    const loadedMs = now - this.#loadingSince - this.#beforeLoadMs;
    const usualMs = this.#isWaking ? Math.min(wakeMs, loadMs) : loadMs;
    return now + Math.max(usualMs - loadedMs, loadedMs / 4);
  }

  get readyAt(): number | null {
    return this.#readyAt;
  }

  /** Since when it was not needed; null unless it rests. */
  get idleSince(): number | null {
    return this.#rest?.idleSince ?? null;
  }

  log(): readonly string[] {
    return (this.#engine?.log() ?? []).slice(-shownLines);
  }

  /** Undefined if it has no engine yet. */
  get engine(): Engine | undefined {
    return this.#engine ?? undefined;
  }

  /** What it does while it starts; null once it has started. */
  progress(): string | null {
    if (this.#state !== 'starting') return null;
    if (this.#isWaking) return 'waking up';
    const meanings = [...this.#recipe.progress, ...scriptProgress];
    return this.#findMeaning(meanings) ?? this.#engine?.phase ?? this.#phase;
  }

  /** The backend by which requests reach it. */
  toBackend(name: string): UpstreamSpec {
    const apiKey = this.#engine?.key ?? null;
    return toUpstream(this.spec, { name, url: this.#url, apiKey });
  }

  drain(): void {
    this.#state = 'draining';
  }

  /** Takes requests again. */
  resume(): void {
    this.#state = 'ready';
  }

  /** Takes a step down. It must be drained. */
  rest(rest: Rest): void {
    this.#state = rest.step;
    this.#rest = rest;
    this.#act(async (engine) => {
      try {
        // Before it is done: the server that adopts it does it again.
        await engine.setResting?.(rest);
        await this.#lower(engine, rest.step);
      } catch (error) {
        this.#skip(rest, (error as Error).message);
      }
    });
  }

  #adoptResting(rest: Rest, readyAt: number | null): void {
    this.#readyAt = readyAt;
    this.#rest = rest;
    this.#state = rest.step;
    // The earlier process may have ended before it did that.
    const mayNotRepeat = rest.step === 'asleep' && sleeps[this.spec.engine]?.endsIfRepeated;
    if (!mayNotRepeat) this.#act((engine) => this.#lowerAdopted(engine, rest));
  }

  /** Its host may not be connected yet. */
  async #lowerAdopted(engine: Engine, rest: Rest): Promise<void> {
    const { clock } = this.#parts;
    const deadline = clock.now() + adoptionMs;
    while (!this.#over.signal.aborted) {
      try {
        return await this.#lower(engine, rest.step);
      } catch (error) {
        if (clock.now() >= deadline) return this.#skip(rest, (error as Error).message);
        await clock.sleep(probeEveryMs);
      }
    }
  }

  /** Rejects with a sentence. */
  async #lower(engine: Engine, step: Rest['step']): Promise<void> {
    this.#isHalted = step === 'stopped';
    if (this.#isHalted) await halt(engine);
    else await this.#post(sleeps[this.spec.engine]?.path, 'could not be put to sleep');
  }

  /** Takes the next step down, after one that failed. That is no failed start: the replica is not needed. */
  #skip({ step, idleSince }: Rest, reason: string): void {
    // It is needed again, or ends anyway.
    if (this.#rest === null || this.#ending !== null) return;
    this.#parts.log.warn({ reason }, 'an idle engine could not rest');
    if (step === 'asleep' && this.spec.ladder.stopped !== null)
      this.rest({ step: 'stopped', idleSince });
    else void this.stop();
  }

  /** Becomes ready again, as by a start. */
  wake(now: number): void {
    this.#isWaking = this.#state === 'asleep';
    this.#state = 'starting';
    this.#rest = null;
    this.#loadingSince = now;
    this.#readyAt = null;
    this.#act(async (engine) => {
      if (this.#isHalted) await engine.revive?.();
      else await this.#post(sleeps[this.spec.engine]?.wakePath, 'could not be woken');
      await this.#getReady(engine, null);
    });
  }

  /** Resolves when its engine has ended and nothing of it is left. */
  async stop(): Promise<void> {
    this.#state = 'stopping';
    await this.#end('stop');
  }

  /** This server ends. Resolves when the engine has ended, or goes on without it. */
  leave(): Promise<void> {
    return this.#end('leave');
  }

  async #end(how: 'stop' | 'leave'): Promise<void> {
    this.#ending = how;
    this.#abort.abort();
    await this.#engine?.[how]();
    await this.#done;
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#engine?.port ?? 0}/v1`;
  }

  /** From the start to the end of the engine. Never throws. */
  async #run({ start }: ReplicaOrder): Promise<void> {
    try {
      this.#engine = await start({ report: this.#report, signal: this.#abort.signal });
      const ended = await this.#serve(this.#engine);
      if (this.#ending === null && ended !== null) this.failure = this.#explain(ended);
    } catch (error) {
      if (this.#ending === null) this.failure = toStartFailure(error as Error);
    }
    // Nothing of an engine that failed may stay, and it takes no more requests.
    this.#state = 'stopping';
    if (this.#ending === null) this.#parts.changed();
    await this.#engine?.[this.#ending ?? 'stop']();
    this.hasEnded = true;
    if (this.failure !== null) this.logFailure(this.failure);
    this.#parts.changed();
  }

  logFailure({ reason }: Failure): void {
    this.#parts.log.warn({ reason }, 'the engine of a deployment failed');
  }

  #report: StartWatch['report'] = (progress, { isWaiting = false, leftMs = 0 } = {}) => {
    this.#phase = progress;
    this.#isWaiting = isWaiting;
    this.#loadingSince = this.#parts.clock.now();
    this.#beforeLoadMs = leftMs;
  };

  /** Resolves with how the engine ended, or null if that is no failure. */
  async #serve(engine: Engine): Promise<Failure | null> {
    // It was stopped meanwhile.
    if (this.#ending !== null) return null;
    void engine.ended.then(() => this.#over.abort());
    this.#opened.resolve(engine);
    return Promise.race([engine.ended, this.#broken.promise]);
  }

  /** After all earlier actions. If it fails, the replica has failed. */
  #act(action: (engine: Engine) => Promise<void>): void {
    this.#actions = this.#actions
      .then(async () => {
        const engine = await this.#opened.promise;
        if (!this.#over.signal.aborted) await action(engine);
      })
      .catch(({ message }: Error) => this.#broken.resolve(toFailure(message)));
  }

  /** `readyAt` is when an engine that is adopted answered first. */
  async #getReady(engine: Engine, readyAt: number | null): Promise<void> {
    const over = this.#over.signal;
    if (!(await this.#answersInTime(engine))) throw new Error(this.#lateness);
    if (over.aborted) return;
    this.#readyAt = readyAt ?? this.#parts.clock.now();
    if (readyAt === null) {
      engine.setReady?.(this.#readyAt);
      const startMs = this.#readyAt - this.#loadingSince;
      this.#parts.log.info({ start_ms: startMs }, 'a replica is ready');
    }
    this.#isWaking = false;
    if (this.#state === 'starting') this.#state = 'ready';
    this.#parts.changed();
  }

  /** Rejects with a sentence if the engine does not do it. */
  async #post(path: string | null | undefined, failure: string): Promise<void> {
    if (path == null) return;
    const response = await this.#fetch(path, {}).catch(() => null);
    await response?.body?.cancel();
    if (response?.ok || this.#over.signal.aborted) return;
    const answer = response === null ? 'it did not respond' : `its status was ${response.status}`;
    throw new Error(`The engine ${failure}: ${answer}.`);
  }

  #fetch(path: string, body: object): Promise<Response> {
    return fetch(new URL(path, this.#url), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#engine?.key}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
      // Engines are not trusted with the addresses that this server reaches.
      redirect: 'manual',
      signal: AbortSignal.any([
        this.#over.signal,
        AbortSignal.timeout(this.spec.start_seconds * 1_000),
      ]),
    });
  }

  get #lateness(): string {
    return `The engine did not answer within ${this.spec.start_seconds} seconds. ${this.#lastProbe}`;
  }

  /** Returns false if the engine runs but does not answer in time. */
  async #answersInTime(engine: Engine): Promise<boolean> {
    const { clock } = this.#parts;
    const startMs = this.spec.start_seconds * 1_000;
    const earliest = clock.now() + Math.min(startMs, adoptionMs);
    while (!(await this.#answers())) {
      if (this.#over.signal.aborted) return true;
      const now = clock.now();
      if (engine.isPreparing) this.#loadingSince = now;
      if (now >= Math.max(this.#loadingSince + startMs, earliest)) return false;
      await clock.sleep(probeEveryMs);
    }
    return true;
  }

  async #answers(): Promise<boolean> {
    const { answers, outcome } = await probe(
      (path, body) => this.#fetch(path, body),
      this.spec.model,
    );
    this.#lastProbe = outcome ?? this.#lastProbe;
    return answers;
  }

  #explain(ended: Failure): Failure {
    // Not its last line, which may have a secret: what it means is sent to every client.
    const meaning = findFailure(this.log(), this.#recipe);
    return meaning === undefined ? ended : toFailure(meaning);
  }

  /** What the newest line of the log means that a pattern matches. */
  #findMeaning(meanings: Recipe['progress']): string | undefined {
    for (const line of this.log().toReversed()) {
      const found = meanings.find(([pattern]) => pattern.test(line));
      if (found !== undefined) return found[1];
    }
    return undefined;
  }
}

const toStartFailure = (error: Error): Failure =>
  error instanceof FlawedStart
    ? error.failure
    : toFailure('The engine could not be started.', error.message);

async function halt(engine: Engine): Promise<void> {
  if (engine.halt === undefined) throw new Error('The engine has no machine that could stay.');
  await engine.halt();
}
