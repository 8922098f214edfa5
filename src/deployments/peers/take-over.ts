// Takes over deployments on machines whose server is lost. Machines of hosts in the network go on.

import type { FastifyBaseLogger } from 'fastify';
import type { Engines } from '#deployments/engines/engines.ts';
import type { DeploymentRows, Stored } from '#deployments/ground/rows.ts';

interface TakeOverParts {
  readonly rows: DeploymentRows;
  readonly engines: Engines;
  readonly log: FastifyBaseLogger;
}

/**
 * `lost` are ids of servers. Returns the ids of the deployments that this server runs from now on. Engines beside a server
 * stay with it: another computer may lack their program.
 */
export async function takeOver(
  { rows, engines, log }: TakeOverParts,
  others: readonly Stored[],
  lost: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const taken = new Set<string>();
  for (const stored of others) {
    const { id, name, runnerId, spec } = stored;
    if (!lost.has(runnerId) || spec.runs_on === 'host' || !engines.canLaunch(spec.runs_on))
      continue;
    if (!(await rows.takeOver(stored))) continue;
    taken.add(id);
    log.warn({ deployment: name, server: runnerId }, 'the server is lost: this one takes over');
    for (const replica of await engines.findLeft()) {
      // A server's own host has its id. No other server reaches its sandboxes.
      const isOwn = replica.deploymentId === id;
      if (isOwn && (await engines.findHost(replica)) === runnerId) await engines.release(replica);
    }
  }
  return taken;
}
