// One replica of a deployment: an engine that starts, answers, and takes requests until it is drained. It is ready when
// it has generated a token, not when its port is open.

import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { UpstreamSpec } from '#inference/backends/spec.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { type EngineProcess, startEngineProcess } from './engine-process.ts';
import { type Recipe, recipes } from './recipes.ts';
import type { ReplicaFacts } from './scale.ts';
import type { DeploymentSpec } from './spec.ts';

export interface ReplicaParts {
  readonly clock: Clock;
  /** The folder of all replicas. */
  readonly folder: string;
  /** The home directory of all engines, which outlives them: they keep there what they download. */
  readonly home: string;
  /** Called when the replica is ready, and when it has ended. */
  changed(): void;
  /** Called when the replica has ended by itself. */
  failed(reason: string): void;
}

const probeEveryMs = 100;
const shownLines = 50;

export class Replica {
  readonly id = newId();
  readonly revision: number;
  readonly startedAt: number;
  readonly spec: DeploymentSpec;
  readonly #recipe: Recipe;
  readonly #parts: ReplicaParts;
  readonly #key = randomBytes(24).toString('hex');
  readonly #folder: string;
  readonly #done: Promise<void>;
  #process: EngineProcess | null = null;
  #port = 0;
  #state: ReplicaFacts['state'] = 'starting';
  #readyAt: number | null = null;
  #isStopping = false;
  /** Why it ended by itself; null while it runs and after it was stopped. */
  failure: string | null = null;
  hasEnded = false;

  constructor(parts: ReplicaParts, spec: DeploymentSpec, revision: number) {
    this.#parts = parts;
    this.spec = spec;
    this.revision = revision;
    this.startedAt = parts.clock.now();
    this.#recipe = recipes[spec.engine];
    this.#folder = join(parts.folder, this.id);
    this.#done = this.#run();
  }

  get state(): ReplicaFacts['state'] {
    return this.#state;
  }

  get readyAt(): number | null {
    return this.#readyAt;
  }

  log(): readonly string[] {
    return (this.#process?.log() ?? []).slice(-shownLines);
  }

  /** What it does while it starts; null once it has started. */
  progress(): string | null {
    if (this.#state !== 'starting') return null;
    return this.#findMeaning(this.#recipe.progress) ?? 'starting';
  }

  /** The backend by which requests reach it. */
  toBackend(name: string): UpstreamSpec {
    const { model, weight } = this.spec;
    return {
      source: 'deployment',
      model,
      name,
      url: this.#url,
      apiKey: this.#key,
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

  /** Resolves when its process has ended and its files are removed. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#state = 'stopping';
    await this.#process?.stop();
    await this.#done;
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  /** From the start to the end of the engine. Never throws. */
  async #run(): Promise<void> {
    try {
      const ended = await this.#start();
      if (!this.#isStopping) this.failure = this.#explain(ended);
    } catch (error) {
      this.failure = `The engine could not be started: ${(error as Error).message}`;
    }
    this.hasEnded = true;
    await rm(this.#folder, { recursive: true, force: true }).catch(() => {});
    if (this.failure !== null) this.#parts.failed(this.failure);
    this.#parts.changed();
  }

  /** Resolves with a sentence on how the engine ended. */
  async #start(): Promise<string> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await mkdir(this.#parts.home, { recursive: true, mode: 0o700 });
    this.#port = await findFreePort();
    const place = { port: this.#port, key: this.#key, folder: this.#folder };
    for (const [name, text] of Object.entries(this.#recipe.toFiles?.(this.spec, place) ?? {}))
      await writeFile(join(this.#folder, name), text, { mode: 0o600 });
    if (this.#isStopping) return '';
    this.#process = startEngineProcess({
      command: this.#recipe.toCommand(this.spec, place),
      env: { ...this.spec.env, ...this.#recipe.toEnvironment(this.spec, place) },
      folder: this.#folder,
      home: this.#parts.home,
    });
    const { ended, stop } = this.#process;
    const over = new AbortController();
    void ended.then(() => over.abort());
    if (await this.#isReadyInTime(over.signal)) return ended;
    await stop();
    return `The engine did not answer within ${this.spec.start_seconds} seconds.`;
  }

  /** Returns false if the engine runs but does not answer in time. */
  async #isReadyInTime(over: AbortSignal): Promise<boolean> {
    const { clock, changed } = this.#parts;
    const deadline = this.startedAt + this.spec.start_seconds * 1_000;
    while (!(await this.#answers(over))) {
      if (over.aborted) return true;
      if (clock.now() >= deadline) return false;
      await setTimeout(probeEveryMs);
    }
    this.#readyAt = clock.now();
    if (this.#state === 'starting') this.#state = 'ready';
    changed();
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
        headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.any([over, AbortSignal.timeout(this.spec.start_seconds * 1_000)]),
      });
      const { choices } = (await response.json()) as { choices?: unknown };
      return response.ok && Array.isArray(choices) && choices.length > 0;
    } catch {
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

/** Another process may take the port before the engine does. Then the engine fails, and the next start has another. */
function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
