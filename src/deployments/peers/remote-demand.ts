// How many requests wait on other servers for the deployments of this one.

import type { Clock } from '#lib/clock.ts';

/** A server without a heartbeat for this long has no requests that wait. */
const freshMs = 3_000;
/** Maximum servers kept for a deployment. The one with the oldest heartbeat is forgotten first. */
const maxServers = 256;

interface Heartbeat {
  readonly waiting: number;
  readonly at: number;
}

export class RemoteDemand {
  readonly #clock: Clock;
  /** By deployment, then by server. */
  readonly #heartbeats = new Map<string, Map<string, Heartbeat>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(deploymentId: string, serverId: string, waiting: number): void {
    const servers = this.#fresh(deploymentId);
    // In the order of the heartbeats.
    servers.delete(serverId);
    if (waiting > 0) servers.set(serverId, { waiting, at: this.#clock.now() });
    for (const id of servers.keys()) if (servers.size > maxServers) servers.delete(id);
    if (servers.size > 0) this.#heartbeats.set(deploymentId, servers);
    else this.#heartbeats.delete(deploymentId);
  }

  forget(deploymentId: string): void {
    this.#heartbeats.delete(deploymentId);
  }

  of(deploymentId: string): number {
    return this.#fresh(deploymentId)
      .values()
      .reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** Recent heartbeats. The rest is forgotten. */
  #fresh(deploymentId: string): Map<string, Heartbeat> {
    const servers = this.#heartbeats.get(deploymentId) ?? new Map<string, Heartbeat>();
    const since = this.#clock.now() - freshMs;
    for (const [id, { at }] of servers) if (at < since) servers.delete(id);
    return servers;
  }
}
