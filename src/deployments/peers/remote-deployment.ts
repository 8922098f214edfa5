// A deployment that another server runs. Requests for it wait here, as for one of this server. The other server is told how
// many wait, and says which replicas take them. Each of those is a backend here, which is reached through the other server.

import { toUpstream } from '#deployments/engines/upstream.ts';
import type { Stored } from '#deployments/ground/rows.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { toHoldLimits } from '#deployments/ground/spec.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';
import { readBounded } from '#lib/async/read-bounded.ts';
import type { Clock } from '#lib/clock.ts';
import { type PeerState, parsePeerState, unknownState } from './peer-state.ts';
import { graceMs, type Peer } from './server-rows.ts';

export interface RemoteParts {
  readonly clock: Clock;
  /** Id of this server. */
  readonly serverId: string;
  /** Called when the other server has answered. */
  changed(): void;
  /** Called when the other server no longer answers. */
  silent(name: string, err: Error): void;
}

/** What the requests of this server demand of a deployment. */
export interface RemoteLoad {
  readonly waiting: number;
  /** True while requests run. */
  readonly isUsed: boolean;
}

/** Timeout of a call. The other server delays its answer by up to a second. */
const timeoutMs = 5_000;
/** How often the other server is asked while nothing waits for it. */
const askEveryMs = 5_000;
/** The same while its replicas are used, and while requests wait that it can't serve. */
const usedEveryMs = 1_000;
/** Within this time, the other server knows whether a replica has ended. */
const maxSuspectMs = 3_000;
const maxAnswerBytes = 1_048_576;
/** Within this time, every server reaches its hosts and looks for deployments to take over. */
const takeOverMs = 15_000;

export class RemoteDeployment {
  readonly #parts: RemoteParts;
  #stored: Stored;
  /** Null if its server is lost. */
  #peer: Peer | null = null;
  /** Until when another server may take it over; null if its server is not lost. */
  #takeOverUntil: number | null = null;
  #state: PeerState = unknownState;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Since when the other server has not answered; null if it did. */
  #silentSince: number | null = null;
  #isAsking = false;
  /** Until when a replica of the last answer may have ended. */
  #suspectUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: RemoteParts, stored: Stored) {
    this.#parts = parts;
    this.#stored = stored;
  }

  get model(): string {
    return this.#stored.spec.model;
  }

  get view(): DeploymentView | null {
    return this.#state.view;
  }

  set(stored: Stored, peer: Peer | null): void {
    if (peer?.key !== this.#peer?.key) {
      this.#state = unknownState;
      this.#silentSince = null;
    }
    this.#stored = stored;
    this.#peer = peer;
    if (peer !== null) this.#takeOverUntil = null;
    else this.#takeOverUntil ??= this.#parts.clock.now() + takeOverMs;
  }

  /** Must be called about once a second, and when a request begins to wait. */
  tick({ waiting, isUsed }: RemoteLoad): void {
    const now = this.#parts.clock.now();
    const { replicas, obstacle } = this.#state;
    const waitingMs = obstacle === null && this.#silentSince === null ? 0 : usedEveryMs;
    const readyMs = isUsed || now < this.#suspectUntil ? usedEveryMs : askEveryMs;
    const everyMs = waiting > 0 && replicas.length === 0 ? waitingMs : readyMs;
    const isDue = now - this.#askedAt >= everyMs;
    if (isDue && !this.#isAsking && this.#peer !== null) void this.#ask(waiting);
  }

  /** A replica failed a request, and may have ended. The next tick asks. */
  suspect(): void {
    this.#suspectUntil = this.#parts.clock.now() + maxSuspectMs;
    this.#askedAt = Number.NEGATIVE_INFINITY;
  }

  /** What the registry of backends is given. */
  toModel(): DeployedModel {
    const { name, spec } = this.#stored;
    const { replicas, context_windows: windows } = this.#state;
    const apiKey = this.#peer?.key ?? null;
    const hold = {
      ...toHoldLimits(spec),
      obstacle: this.#obstacle,
      isPassing: this.#state.obstacle === null,
      readyBy: () => this.#state.ready_by,
      progress: () => this.#state.progress,
    };
    return {
      model: spec.model,
      name,
      // The same names as there, so that a conversation has the same replica whichever server it reaches.
      backends: replicas.map((replica) => ({
        spec: toUpstream(spec, {
          name: replica,
          url: `${this.#address}/replicas/${replica}/v1`,
          apiKey,
        }),
        isDraining: false,
        contextWindow: windows[replica] ?? null,
      })),
      hold: replicas.length > 0 ? null : hold,
    };
  }

  get #obstacle(): string | null {
    const { name, spec } = this.#stored;
    const now = this.#parts.clock.now();
    if (this.#takeOverUntil !== null && now >= this.#takeOverUntil)
      return `The server of the deployment ${name} is lost, and no other one has machines of the type ${spec.runs_on}.`;
    const since = this.#silentSince;
    // For a shorter time, requests wait: the server may be lost, so that another takes over.
    const isSilent = since !== null && now - since >= graceMs;
    if (!isSilent) return this.#state.obstacle;
    return `The server of the deployment ${name} does not answer.`;
  }

  get #address(): string {
    return `${this.#peer?.url.replace(/\/+$/, '')}/peer/v1/deployments/${this.#stored.id}`;
  }

  async #ask(waiting: number): Promise<void> {
    this.#isAsking = true;
    const demand = { server: this.#parts.serverId, waiting };
    const state = await this.#fetch<Partial<PeerState>>('/demand', demand)
      .then(parsePeerState)
      .catch(this.#noteSilence);
    this.#isAsking = false;
    this.#state = state ?? unknownState;
    this.#askedAt = this.#parts.clock.now();
    if (state !== null) this.#silentSince = null;
    this.#parts.changed();
  }

  /** A POST request if there is a body. Returns null if the other server does not answer. */
  call<Answer>(path: string, body?: object): Promise<Answer | null> {
    return this.#fetch<Answer>(path, body).catch(() => null);
  }

  #noteSilence = (err: Error): null => {
    if (this.#silentSince === null) this.#parts.silent(this.#stored.name, err);
    this.#silentSince ??= this.#parts.clock.now();
    return null;
  };

  async #fetch<Answer>(path: string, body?: object): Promise<Answer> {
    const response = await fetch(`${this.#address}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${this.#peer?.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = response.body && (await readBounded(response.body, maxAnswerBytes));
    if (!response.ok || text === null) throw new Error(`Its status was ${response.status}.`);
    return JSON.parse(text.toString()) as Answer;
  }
}
