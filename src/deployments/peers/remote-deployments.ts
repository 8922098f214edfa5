// The deployments that other servers run and this one can reach.

import type { Stored } from '#deployments/ground/rows.ts';
import type { DeploymentLog, DeploymentView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';
import { RemoteDeployment, type RemoteLoad, type RemoteParts } from './remote-deployment.ts';
import type { Peer } from './server-rows.ts';

export class RemoteDeployments {
  readonly #parts: RemoteParts;
  readonly #all = new Map<string, RemoteDeployment>();

  constructor(parts: RemoteParts) {
    this.#parts = parts;
  }

  /**
   * `others` are the deployments of other servers. Those of servers that can't be reached are left out, but requests for
   * machines of a lost server wait for another one to take over.
   */
  set(others: readonly Stored[], peers: readonly Peer[], lost: ReadonlySet<string>): void {
    const reachable = new Map(peers.map((peer) => [peer.id, peer]));
    const ids = new Set<string>();
    for (const stored of others) {
      const { runnerId, spec } = stored;
      const peer = reachable.get(runnerId) ?? null;
      if (peer === null && (!lost.has(runnerId) || spec.runs_on === 'host')) continue;
      ids.add(stored.id);
      const remote = this.#all.get(stored.id) ?? new RemoteDeployment(this.#parts, stored);
      remote.set(stored, peer);
      this.#all.set(stored.id, remote);
    }
    for (const id of this.#all.keys()) if (!ids.has(id)) this.#all.delete(id);
  }

  has(model: string): boolean {
    return [...this.#all.values()].some((remote) => remote.model === model);
  }

  /** `loadOf` returns the requests of a model that its remote deployments must find room for. */
  tick(loadOf: (model: string) => RemoteLoad): void {
    const byModel = Map.groupBy(this.#all.values(), ({ model }) => model);
    for (const [model, remotes] of byModel) {
      const { waiting, isUsed } = loadOf(model);
      const share = { waiting: Math.ceil(waiting / remotes.length), isUsed };
      for (const remote of remotes) remote.tick(share);
    }
  }

  /** Replicas of the model may have ended. */
  suspect(model: string): void {
    for (const remote of this.#all.values()) if (remote.model === model) remote.suspect();
  }

  toModels(): DeployedModel[] {
    return [...this.#all.values()].map((remote) => remote.toModel());
  }

  /** As its server showed it seconds ago; null if it did not. */
  findView(id: string): DeploymentView | null {
    return this.#all.get(id)?.view ?? null;
  }

  /** Returns false if its server does not answer. */
  async resetBackoff(id: string): Promise<boolean> {
    const answer = await this.#all.get(id)?.call('/reset-backoff', {});
    return answer != null;
  }

  /** Null if its server does not answer. */
  async findStats(id: string): Promise<readonly ReplicaStats[] | null> {
    return (
      (await this.#all.get(id)?.call<{ replicas: ReplicaStats[] }>('/stats'))?.replicas ?? null
    );
  }

  async findLog(id: string): Promise<readonly string[]> {
    return (await this.#all.get(id)?.call<DeploymentLog>('/log'))?.lines ?? [];
  }
}
