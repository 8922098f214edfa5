// How many requests wait on other servers for the deployments of this one.

import type { Clock } from '#lib/clock.ts';

/** A server that said nothing for this long has no requests that wait. */
const freshMs = 3_000;

interface Said {
  readonly waiting: number;
  readonly at: number;
}

export class RemoteDemand {
  readonly #clock: Clock;
  /** By deployment, then by server. */
  readonly #said = new Map<string, Map<string, Said>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(deploymentId: string, serverId: string, waiting: number): void {
    const servers = this.#said.get(deploymentId) ?? new Map<string, Said>();
    servers.set(serverId, { waiting, at: this.#clock.now() });
    this.#said.set(deploymentId, servers);
  }

  forget(deploymentId: string): void {
    this.#said.delete(deploymentId);
  }

  of(deploymentId: string): number {
    const servers = this.#said.get(deploymentId);
    if (servers === undefined) return 0;
    const since = this.#clock.now() - freshMs;
    for (const [id, { at }] of servers) if (at < since) servers.delete(id);
    if (servers.size === 0) this.#said.delete(deploymentId);
    return [...servers.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }
}
