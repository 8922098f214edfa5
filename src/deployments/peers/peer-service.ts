// What this server does for the others of its database: it starts replicas for the requests that wait there, and passes
// their requests on to its replicas.

import { noSuchDeployment } from '#deployments/errors.ts';
import type { LiveDeployment } from '#deployments/live-deployment.ts';
import type { LiveDeployments } from '#deployments/live-deployments.ts';
import type { DeploymentLog } from '#deployments/schema.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import type { BackendRegistry } from '#inference/backends/registry.ts';
import { EngineError } from '#inference/engine.ts';
import type { Router } from '#inference/routing/router.ts';
import type { Outcome, ReplicaAddress } from './forward.ts';
import { type PeerState, toPeerState } from './peer-state.ts';

/** How long an answer is delayed while no replica is ready. */
const maxDelayMs = 1_000;

/** A replica that takes one request. `release` must be called exactly once. */
export interface ReplicaLease extends ReplicaAddress {
  release(outcome: Outcome): void;
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
      const { hold } = live.toModel();
      // The requests will be sent here, and count as running from then on.
      if (hold === null) this.#deployments.noteDemand(id, serverId, 0);
      const leftMs = until - performance.now();
      const isAnswer = hold === null || hold.obstacle !== null || waiting === 0;
      if (isAnswer || leftMs <= 0) return toPeerState(hold, this.#deployments.view(live.stored));
      await this.#deployments.nextTick(leftMs);
    }
  }

  modelOf(id: string): string {
    return this.#deployments.find(id)?.model ?? id;
  }

  /** Lets the deployment start again after failures. */
  async forgive(id: string): Promise<void> {
    await this.#deployments.forgive(this.#find(id).id);
  }

  log(id: string): DeploymentLog {
    return { lines: [...this.#find(id).log()] };
  }

  /** Waits for a replica. Throws EngineError. */
  async lease(id: string, signal: Cancellation): Promise<ReplicaLease> {
    const live = this.#find(id);
    const { model } = live;
    const router = this.#router;
    const registry = this.#registry;
    const own = new Set([live.name, ...live.toModel().backends.map(({ spec }) => spec.name)]);
    const request = {
      task: { kind: 'chat' as const, body: { model, messages: [] } },
      caller: id,
      priority: 0,
      signal,
      exclude: new Set(registry.forModel(model).filter(({ name }) => !own.has(name))),
    };
    const lease = router.tryAcquire(model, request) ?? (await router.waitForLease(model, request));
    const spec = registry.find(model, lease.backend.name)?.spec;
    if (spec == null) {
      router.release(lease);
      throw new EngineError('unavailable', 'The replica has just ended.');
    }
    return {
      url: spec.url.replace(/\/v1$/, ''),
      key: spec.apiKey,
      release(outcome) {
        const { health } = lease.backend;
        if (outcome === 'passed') health.succeeded();
        if (outcome === 'failed') health.failed('It failed a request of another server.');
        router.release(lease);
      },
    };
  }

  #find(id: string): LiveDeployment {
    const live = this.#deployments.find(id);
    if (live === undefined) throw noSuchDeployment(id);
    return live;
  }
}
