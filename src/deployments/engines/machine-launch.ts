// Launches the machine of a replica, and waits for one while all of its type are in use.

import { randomBytes } from 'node:crypto';
import { CloudError } from '#cloud/errors.ts';
import type { Engine, EngineOrder, StartWatch } from './engine.ts';
import { toEngineScript } from './engine-script.ts';
import { type MachineEngineParts, openMachineEngine, releaseMachine } from './machine-engine.ts';

/** Intervals between launches while no machine is free: the first one, doubled up to the second. */
const minCapacityMs = 500;
const maxCapacityMs = 5_000;

/**
 * Waits while no machine of the type is free. `weights` is what the machine must see of this computer. Rejects with the
 * reason if the cloud refuses the launch.
 */
export async function launchMachineEngine(
  parts: MachineEngineParts,
  order: EngineOrder,
  weights: string | null,
  watch: StartWatch,
): Promise<Engine> {
  const { id, deployment, spec } = order;
  const key = randomBytes(24).toString('hex');
  for (let waitMs = minCapacityMs; ; waitMs = Math.min(maxCapacityMs, waitMs * 2)) {
    if (await tryLaunch(parts, order, weights, key)) break;
    watch.report(`waiting for a free ${spec.runs_on}`, { isWaiting: true });
    await parts.clock.sleep(waitMs, { signal: watch.signal });
  }
  watch.report('launching the machine');
  return openMachineEngine(parts, { id, accountId: deployment.accountId, key });
}

/** Returns false if no machine is free. */
async function tryLaunch(
  parts: MachineEngineParts,
  order: EngineOrder,
  weights: string | null,
  key: string,
): Promise<boolean> {
  const { id, deployment, spec } = order;
  const { clock, log, machines, replicaRows } = parts;
  const startedAt = clock.now();
  try {
    return await machines.launch(
      {
        id,
        accountId: deployment.accountId,
        deploymentId: deployment.id,
        deploymentName: deployment.name,
        instanceType: spec.runs_on,
        image: spec.image,
        userData: replicaRows.seal(toEngineScript(spec, key), id),
        weights,
      },
      (tx) => replicaRows.insert(tx, order, { key, startedAt }),
    );
  } catch (error) {
    // The database may have written it before the connection broke.
    if (!(error instanceof CloudError))
      await releaseMachine(parts, deployment.accountId, id).catch((err) =>
        log.warn({ err, replica: id }, 'a machine whose launch failed was not released'),
      );
    throw error;
  }
}
