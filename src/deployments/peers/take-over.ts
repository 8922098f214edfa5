// Takes over deployments on machines whose server is lost. Machines that this server reaches go on.

import type { FastifyBaseLogger } from 'fastify';
import type { Engines } from '#deployments/engines/engines.ts';
import type { DeploymentRows, Stored } from '#deployments/rows.ts';

interface TakeOverParts {
  readonly rows: DeploymentRows;
  readonly engines: Engines;
  readonly log: FastifyBaseLogger;
}

/** `lost` are ids of servers. Engines beside a server stay with it: another computer may lack their program. */
export async function takeOver(
  { rows, engines, log }: TakeOverParts,
  others: readonly Stored[],
  lost: ReadonlySet<string>,
): Promise<void> {
  for (const stored of others) {
    const { name, runnerId, spec } = stored;
    if (!lost.has(runnerId) || spec.runs_on === 'host' || !engines.isPlace(spec.runs_on)) continue;
    if (!(await rows.takeOver(stored))) continue;
    log.warn({ deployment: name, server: runnerId }, 'the server is lost: this one takes over');
    for (const replica of await engines.findLeft()) {
      const isOwn = replica.deploymentId === stored.id;
      if (isOwn && !(await engines.reaches(replica))) await engines.release(replica);
    }
  }
}
