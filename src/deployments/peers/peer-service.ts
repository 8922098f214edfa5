// What this server does for the others of its database: it starts replicas for the requests that wait there, and passes
// their requests on to its replicas.

import { noSuchDeployment } from '#deployments/ground/errors.ts';
import type { DeploymentLog } from '#deployments/ground/schema.ts';
import type { LiveDeployment } from '#deployments/life/live-deployment.ts';
import type { LiveDeployments } from '#deployments/life/live-deployments.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import type { Backend } from '#inference/backends/backend.ts';
import type { BackendRegistry, DeployedModel } from '#inference/backends/registry.ts';
import { EngineError } from '#inference/engine.ts';
import type { Router } from '#inference/routing/router.ts';
import type { Outcome, ReplicaAddress } from './forward.ts';
import { type PeerState, toPeerState } from './peer-state.ts';

/** How long an answer is delayed while no replica is ready. */
const maxDelayMs = 1_000;

/** A replica that takes one request. `release` must be called exactly once. */
export interface ReplicaLease extends ReplicaAddress {
  release(outcome: Outcome): void;
  /** Resolves once it is known whether the only replica has ended, which the next state then says. */
  done(): Promise<void>;
}

export class PeerService {
  readonly #deployments: LiveDeployments;
  readonly #registry: BackendRegistry;
  readonly #router: Router;

  constructor(deployments: LiveDeployments, registry: BackendRegistry, router: Router) {
    this.#deployments = deployments;
    this.#registry = registry;
    this.#router = router;
  }

  /** Takes note of requests that wait on another server. Resolves early once a replica takes them. */
  async takeDemand(id: string, serverId: string, waiting: number): Promise<PeerState> {
    const live = this.#find(id);
    const until = performance.now() + maxDelayMs;
    this.#deployments.noteDemand(id, serverId, waiting);
    for (;;) {
      const model = live.toModel();
      const { hold } = model;
      // The requests will be sent here, and count as running from then on.
      if (hold === null) this.#deployments.noteDemand(id, serverId, 0);
      const leftMs = until - performance.now();
      const isAnswer = hold === null || hold.obstacle !== null || waiting === 0;
      if (isAnswer || leftMs <= 0) return this.#toState(live, model);
      await this.#deployments.nextTick(leftMs);
    }
  }

  #toState(live: LiveDeployment, model: DeployedModel): PeerState {
    const windowOf = (name: string) => this.#registry.find(live.model, name)?.contextWindow ?? null;
    return toPeerState(model, this.#deployments.view(live.stored), windowOf);
  }

  modelOf(id: string): string {
    return this.#deployments.find(id)?.model ?? id;
  }

  /** Lets the deployment start again after failures. */
  async resetBackoff(id: string): Promise<void> {
    await this.#deployments.resetBackoff(this.#find(id).id);
  }

  async stats(id: string): Promise<{ replicas: readonly ReplicaStats[] }> {
    return { replicas: await this.#find(id).stats() };
  }

  log(id: string): DeploymentLog {
    return { lines: [...this.#find(id).log()] };
  }

  /**
   * Takes the replica that the other server has chosen. Throws EngineError `unavailable` if it takes no requests. The
   * other server then tries the next one, or lets the request wait as its own.
   */
  async lease(id: string, name: string, signal: Cancellation): Promise<ReplicaLease> {
    const router = this.#router;
    const registry = this.#registry;
    const live = this.#find(id);
    const isOwn = live.toModel().backends.some(({ spec }) => spec.name === name);
    const backend = isOwn ? registry.find(live.model, name) : undefined;
    const spec = backend?.spec ?? null;
    if (backend === undefined || spec === null || !takesRequests(backend))
      throw new EngineError('unavailable', 'The replica takes no requests.');
    const lease = await router.leaseOf(backend, { caller: id, priority: 0, signal });
    return {
      url: spec.url.replace(/\/v1$/, ''),
      key: spec.apiKey,
      release(outcome) {
        const { health } = lease.backend;
        if (outcome === 'passed') health.succeeded();
        if (outcome === 'failed') health.failed('It failed a request of another server.');
        router.release(lease);
      },
      async done() {
        const isOnly = live.toModel().backends.every(({ spec }) => spec.name === name);
        if (isOnly) await registry.hasEnded(lease.backend);
      },
    };
  }

  #find(id: string): LiveDeployment {
    const live = this.#deployments.find(id);
    if (live === undefined) throw noSuchDeployment(id);
    return live;
  }
}

const takesRequests = ({ draining, health }: Backend) => !draining && health.state() !== 'ejected';
