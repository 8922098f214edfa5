// A deployment that another server runs. Requests for it wait here, as for one of this server. The other server is told how
// many wait, and says when a replica takes them. Then they are sent through it.

import { recipes } from '#deployments/engines/recipes.ts';
import type { Stored } from '#deployments/rows.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';
import { readBounded } from '#lib/async/read-bounded.ts';
import type { Clock } from '#lib/clock.ts';
import { type PeerState, unknownState } from './peer-state.ts';
import type { Peer } from './server-rows.ts';

export interface RemoteParts {
  readonly clock: Clock;
  /** Id of this server. */
  readonly serverId: string;
  /** Called when the other server has said something new. */
  changed(): void;
  /** Requests for the model that have begun here and not ended. */
  outstanding(model: string, backend: string): number;
}

/** The other server waits for a change for a second. */
const timeoutMs = 5_000;
/** How long a replica that was ready is believed to be. */
const freshMs = 2_000;
const maxAnswerBytes = 1_048_576;

export class RemoteDeployment {
  readonly #parts: RemoteParts;
  #stored: Stored;
  #peer: Peer;
  #state: PeerState = unknownState;
  #saidAt = Number.NEGATIVE_INFINITY;
  #isAsking = false;

  constructor(parts: RemoteParts, stored: Stored, peer: Peer) {
    this.#parts = parts;
    this.#stored = stored;
    this.#peer = peer;
  }

  get model(): string {
    return this.#stored.spec.model;
  }

  set(stored: Stored, peer: Peer): void {
    if (peer.key !== this.#peer.key) this.#state = unknownState;
    this.#stored = stored;
    this.#peer = peer;
  }

  /** Must be called about once a second, and when a request begins to wait. */
  tick(waiting: number): void {
    const running = this.#parts.outstanding(this.model, this.#stored.name);
    const isFresh = this.#parts.clock.now() - this.#saidAt < freshMs;
    if (!isFresh && running === 0) this.#state = unknownState;
    const isAsked = waiting > 0 ? !this.#state.is_ready : running > 0 && !isFresh;
    if (isAsked && !this.#isAsking) void this.#ask(waiting);
  }

  /** What the registry of backends is given. */
  toModel(): DeployedModel {
    const { name, spec } = this.#stored;
    const { is_ready: isReady, obstacle, ready_by: readyBy } = this.#state;
    const hold = {
      maxLength: spec.hold_requests,
      maxWaitMs: spec.hold_seconds * 1_000,
      obstacle,
      readyBy,
      progress: () => this.#state.progress,
    };
    return {
      model: spec.model,
      name,
      backends: isReady ? [{ spec: this.#toBackend(), isDraining: false }] : [],
      hold: isReady ? null : hold,
    };
  }

  #toBackend() {
    const { name, spec } = this.#stored;
    return {
      source: 'deployment' as const,
      model: spec.model,
      name,
      url: this.#address,
      apiKey: this.#peer.key,
      upstreamModel: spec.model,
      server: recipes[spec.engine].server,
      headers: {},
      weight: spec.weight,
      concurrency: null,
      timeouts: { connectMs: 2_000, firstByteMs: 600_000, idleMs: 300_000 },
      continueStreams: null,
    };
  }

  get #address(): string {
    return `${this.#peer.url.replace(/\/+$/, '')}/peer/v1/deployments/${this.#stored.id}`;
  }

  async #ask(waiting: number): Promise<void> {
    this.#isAsking = true;
    const demand = { server: this.#parts.serverId, waiting };
    const state = await this.read<PeerState>('/demand', demand);
    this.#isAsking = false;
    this.#state = state ?? unknownState;
    this.#saidAt = this.#parts.clock.now();
    // Otherwise the next tick asks again.
    if (state !== null) this.#parts.changed();
  }

  /** Reads what the other server knows about the deployment. Returns null if it does not answer. */
  read<Answer>(path: string, body?: object): Promise<Answer | null> {
    return this.#fetch<Answer>(path, body).catch(() => null);
  }

  async #fetch<Answer>(path: string, body?: object): Promise<Answer | null> {
    const response = await fetch(`${this.#address}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${this.#peer.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = response.body && (await readBounded(response.body, maxAnswerBytes));
    return response.ok && text !== null ? (JSON.parse(text.toString()) as Answer) : null;
  }
}
