// One replica of a deployment: an engine that starts, answers, and takes requests until it is drained. It is ready when
// it has generated a token, not when its port is open.

import { setTimeout } from 'node:timers/promises';
import type { Engine, StartWatch } from '#deployments/engines/engine.ts';
import { scriptProgress } from '#deployments/engines/engine-script.ts';
import { type Recipe, recipes } from '#deployments/engines/recipes.ts';
import type { UpstreamSpec } from '#inference/backends/spec.ts';
import { readBounded } from '#lib/async/read-bounded.ts';
import type { Clock } from '#lib/clock.ts';
import type { ReplicaFacts } from './scale.ts';
import type { DeploymentSpec } from './spec.ts';

export interface ReplicaParts {
  readonly clock: Clock;
  /** Called when the replica is ready, and when it has ended. */
  changed(): void;
  /** Called when the replica has ended by itself. */
  failed(reason: string): void;
}

export interface ReplicaOrder {
  readonly id: string;
  readonly spec: DeploymentSpec;
  readonly revision: number;
  readonly startedAt: number;
  /** When an engine that is adopted answered first. */
  readonly readyAt?: number | null;
  /** Starts the engine, or adopts one that runs. Rejects with a sentence if it can't. */
  start(watch: StartWatch): Promise<Engine>;
}

const probeEveryMs = 100;
/** The response to a probe has one token. */
const maxProbeBytes = 1_048_576;
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
  /** The time before, such as that for fetching weights, does not count as a slow start. */
  #loadingSince: number;
  #engine: Engine | null = null;
  #state: ReplicaFacts['state'] = 'starting';
  #readyAt: number | null = null;
  #ending: 'stop' | 'leave' | null = null;
  /** What came of the last attempt to generate a token, as a sentence. */
  #lastProbe = '';
  /** Why it ended by itself; null while it runs and after it was stopped. */
  failure: string | null = null;
  hasEnded = false;

  constructor(parts: ReplicaParts, order: ReplicaOrder) {
    const { id, spec, revision, startedAt } = order;
    this.id = id;
    this.#parts = parts;
    this.spec = spec;
    this.revision = revision;
    this.startedAt = startedAt;
    this.#loadingSince = startedAt;
    this.#recipe = recipes[spec.engine];
    this.#done = this.#run(order);
  }

  get state(): ReplicaFacts['state'] {
    return this.#state;
  }

  get readyAt(): number | null {
    return this.#readyAt;
  }

  log(): readonly string[] {
    return (this.#engine?.log() ?? []).slice(-shownLines);
  }

  /** What it does while it starts; null once it has started. */
  progress(): string | null {
    if (this.#state !== 'starting') return null;
    const meanings = [...this.#recipe.progress, ...scriptProgress];
    return this.#findMeaning(meanings) ?? this.#engine?.phase ?? this.#phase;
  }

  /** The backend by which requests reach it. */
  toBackend(name: string): UpstreamSpec {
    const { model, weight } = this.spec;
    return {
      source: 'deployment',
      model,
      name,
      url: this.#url,
      apiKey: this.#engine?.key ?? null,
      upstreamModel: model,
      server: this.#recipe.server,
      headers: {},
      weight,
      concurrency: null,
      timeouts: { connectMs: 2_000, firstByteMs: 600_000, idleMs: 300_000 },
      continueStreams: null,
    };
  }

  drain(): void {
    this.#state = 'draining';
  }

  /** Takes requests again. */
  resume(): void {
    this.#state = 'ready';
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
  async #run({ start, readyAt = null }: ReplicaOrder): Promise<void> {
    try {
      this.#engine = await start({ report: this.#report, signal: this.#abort.signal });
      const ended = await this.#serve(this.#engine, readyAt);
      if (this.#ending === null && ended !== null) this.failure = this.#explain(ended);
    } catch (error) {
      if (this.#ending === null)
        this.failure = `The engine could not be started: ${(error as Error).message}`;
    }
    // Nothing of an engine that failed may stay, and it takes no more requests.
    this.#state = 'stopping';
    if (this.#ending === null) this.#parts.changed();
    await this.#engine?.[this.#ending ?? 'stop']();
    this.hasEnded = true;
    if (this.failure !== null) this.#parts.failed(this.failure);
    this.#parts.changed();
  }

  #report = (progress: string): void => {
    this.#phase = progress;
    this.#loadingSince = this.#parts.clock.now();
  };

  /** Resolves with a sentence on how the engine ended, or null if that is no failure. */
  async #serve(engine: Engine, readyAt: number | null): Promise<string | null> {
    // It was stopped meanwhile.
    if (this.#ending !== null) return null;
    const over = new AbortController();
    void engine.ended.then(() => over.abort());
    if (!(await this.#answersInTime(over.signal))) return this.#lateness;
    if (!over.signal.aborted) this.#setReady(engine, readyAt);
    return engine.ended;
  }

  #setReady(engine: Engine, readyAt: number | null): void {
    this.#readyAt = readyAt ?? this.#parts.clock.now();
    if (readyAt === null) engine.setReady?.(this.#readyAt);
    if (this.#state === 'starting') this.#state = 'ready';
    this.#parts.changed();
  }

  get #lateness(): string {
    return `The engine did not answer within ${this.spec.start_seconds} seconds. ${this.#lastProbe}`;
  }

  /** Returns false if the engine runs but does not answer in time. */
  async #answersInTime(over: AbortSignal): Promise<boolean> {
    const { clock } = this.#parts;
    const { start_seconds: startSeconds } = this.spec;
    const deadline = Math.max(
      this.#loadingSince + startSeconds * 1_000,
      clock.now() + Math.min(startSeconds * 1_000, adoptionMs),
    );
    while (!(await this.#answers(over))) {
      if (over.aborted) return true;
      if (clock.now() >= deadline) return false;
      await setTimeout(probeEveryMs);
    }
    return true;
  }

  /** True if the engine generates a token. */
  async #answers(over: AbortSignal): Promise<boolean> {
    const body = {
      model: this.spec.model,
      messages: [{ role: 'user', content: 'Hi' }],
      max_tokens: 1,
    };
    try {
      const response = await fetch(`${this.#url}/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#engine?.key}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
        // Engines are not trusted with the addresses that this server reaches.
        redirect: 'manual',
        signal: AbortSignal.any([over, AbortSignal.timeout(this.spec.start_seconds * 1_000)]),
      });
      this.#lastProbe = `Its last response to a chat had the status ${response.status}.`;
      const text = response.body && (await readBounded(response.body, maxProbeBytes));
      if (text === null) return false;
      const { choices } = JSON.parse(text.toString()) as { choices?: unknown };
      return response.ok && Array.isArray(choices) && choices.length > 0;
    } catch (error) {
      if (toErrorCode(error) === 'ECONNREFUSED') this.#lastProbe = 'Nothing listens at its port.';
      return false;
    }
  }

  #explain(ended: string): string {
    // Not its last line, which may have a secret: the reason is sent to every client.
    return this.#findMeaning(this.#recipe.failures) ?? ended;
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

/** `fetch` hides the code of an error in its cause. */
const toErrorCode = (error: unknown) =>
  ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code;
