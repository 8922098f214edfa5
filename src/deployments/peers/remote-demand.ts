// How many requests wait on other servers for the deployments of this one.

import type { Clock } from '#lib/clock.ts';

/** A server that said nothing for this long has no requests that wait. */
const freshMs = 3_000;
/** Maximum servers kept for a deployment. The server that spoke longest ago is forgotten first. */
const maxServers = 256;

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
    const servers = this.#fresh(deploymentId);
    // The server that spoke last is the last one.
    servers.delete(serverId);
    if (waiting > 0) servers.set(serverId, { waiting, at: this.#clock.now() });
    for (const id of servers.keys()) if (servers.size > maxServers) servers.delete(id);
    if (servers.size > 0) this.#said.set(deploymentId, servers);
    else this.#said.delete(deploymentId);
  }

  forget(deploymentId: string): void {
    this.#said.delete(deploymentId);
  }

  of(deploymentId: string): number {
    return this.#fresh(deploymentId)
      .values()
      .reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** What servers said lately. The rest is forgotten. */
  #fresh(deploymentId: string): Map<string, Said> {
    const servers = this.#said.get(deploymentId) ?? new Map<string, Said>();
    const since = this.#clock.now() - freshMs;
    for (const [id, { at }] of servers) if (at < since) servers.delete(id);
    return servers;
  }
}
