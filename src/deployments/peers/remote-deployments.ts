// The deployments that other servers run and this one can reach.

import type { Stored } from '#deployments/rows.ts';
import type { DeploymentLog, DeploymentView } from '#deployments/schema.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';
import { RemoteDeployment, type RemoteParts } from './remote-deployment.ts';
import type { Peer } from './server-rows.ts';

export class RemoteDeployments {
  readonly #parts: RemoteParts;
  readonly #all = new Map<string, RemoteDeployment>();

  constructor(parts: RemoteParts) {
    this.#parts = parts;
  }

  /** `others` are the deployments of other servers. Those of servers that can't be reached are left out. */
  set(others: readonly Stored[], peers: readonly Peer[]): void {
    const reachable = new Map(peers.map((peer) => [peer.id, peer]));
    const ids = new Set<string>();
    for (const stored of others) {
      const peer = reachable.get(stored.runnerId);
      if (peer === undefined) continue;
      ids.add(stored.id);
      const known = this.#all.get(stored.id);
      if (known !== undefined) known.set(stored, peer);
      else this.#all.set(stored.id, new RemoteDeployment(this.#parts, stored, peer));
    }
    for (const id of this.#all.keys()) if (!ids.has(id)) this.#all.delete(id);
  }

  has(model: string): boolean {
    return [...this.#all.values()].some((remote) => remote.model === model);
  }

  tick(waiting: (model: string) => number): void {
    for (const remote of this.#all.values()) remote.tick(waiting(remote.model));
  }

  toModels(): DeployedModel[] {
    return [...this.#all.values()].map((remote) => remote.toModel());
  }

  /** Null if the deployment's server did not say. */
  async findView(id: string): Promise<DeploymentView | null> {
    return (await this.#all.get(id)?.read<DeploymentView>('')) ?? null;
  }

  async findLog(id: string): Promise<readonly string[]> {
    return (await this.#all.get(id)?.read<DeploymentLog>('/log'))?.lines ?? [];
  }
}
