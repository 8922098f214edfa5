// What this server does for the others of its database: it starts replicas for the requests that wait there, and passes
// their requests on to its replicas.

import type { Deployments } from '#deployments/deployments.ts';
import { noSuchDeployment } from '#deployments/errors.ts';
import type { LiveDeployment } from '#deployments/live-deployment.ts';
import type { DeploymentLog, DeploymentView } from '#deployments/schema.ts';
import { toView } from '#deployments/view.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import type { BackendRegistry } from '#inference/backends/registry.ts';
import { EngineError } from '#inference/engine.ts';
import type { Lease, Router } from '#inference/routing/router.ts';
import type { ReplicaAddress } from './forward.ts';
import { type PeerState, toPeerState } from './peer-state.ts';

/** How long an answer waits for a replica that is not ready. */
const patienceMs = 1_000;

/** A replica that takes one request. `release` must be called exactly once. */
export interface ReplicaLease extends ReplicaAddress {
  /** `failure` says how the replica failed; null if it did not. */
  release(failure: string | null): void;
}

export class PeerService {
  readonly #deployments: Deployments;
  readonly #registry: BackendRegistry;
  readonly #router: Router;

  constructor(deployments: Deployments, registry: BackendRegistry, router: Router) {
    this.#deployments = deployments;
    this.#registry = registry;
    this.#router = router;
  }

  /** Takes note of requests that wait on another server. Resolves early once a replica takes them. */
  async takeDemand(id: string, serverId: string, waiting: number): Promise<PeerState> {
    const live = this.#find(id);
    const until = performance.now() + patienceMs;
    this.#deployments.noteDemand(id, serverId, waiting);
    for (;;) {
      const state = toPeerState(live.toModel().hold);
      const leftMs = until - performance.now();
      if (state.is_ready || state.obstacle !== null || leftMs <= 0) return state;
      await this.#deployments.nextTick(leftMs);
    }
  }

  show(id: string): DeploymentView {
    const live = this.#find(id);
    return toView(this.#deployments, { stored: live.stored, live });
  }

  log(id: string): DeploymentLog {
    return { lines: [...this.#find(id).log()] };
  }

  /** Waits for a replica. Throws EngineError. */
  async lease(id: string, signal: Cancellation): Promise<ReplicaLease> {
    const live = this.#find(id);
    const { model } = live;
    const router = this.#router;
    const request = {
      task: { kind: 'chat' as const, body: { model, messages: [] } },
      caller: id,
      priority: 0,
      signal,
      exclude: new Set(this.#registry.forModel(model).filter(({ id }) => !this.#isReplica(id))),
    };
    const lease = router.tryAcquire(model, request) ?? (await router.waitForLease(model, request));
    const address = this.#addressOf(lease);
    if (address === undefined) {
      router.release(lease);
      throw new EngineError('unavailable', 'The replica has just ended.');
    }
    return {
      ...address,
      release(failure) {
        if (failure === null) lease.backend.health.succeeded();
        else lease.backend.health.failed(failure);
        router.release(lease);
      },
    };
  }

  #find(id: string): LiveDeployment {
    const live = this.#deployments.findLive(id);
    if (live === undefined) throw noSuchDeployment(id);
    return live;
  }

  /** Of a deployment of this server: what others run is reached by the server that asks. */
  #isReplica(backendId: string): boolean {
    return this.#deployments
      .localModels()
      .some(
        ({ model, name, backends }) =>
          backendId === `${model}/${name}` ||
          backends.some(({ spec }) => backendId === `${model}/${spec.name}`),
      );
  }

  #addressOf({ backend }: Lease): ReplicaAddress | undefined {
    const specs = this.#deployments.localModels().flatMap(({ backends }) => backends);
    const found = specs.find(({ spec }) => `${spec.model}/${spec.name}` === backend.id);
    return found && { url: found.spec.url, key: found.spec.apiKey };
  }
}
