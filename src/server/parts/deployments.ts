// Deployments: engines that this server runs by itself, as backends of models.

import { join } from 'node:path';
import { readHostId } from '#cloud/hosts/own-host.ts';
import type { EngineMachines } from '#cloud/instances/engine-machines.ts';
import { Deployments } from '#deployments/deployments.ts';
import { createEngines } from '#deployments/engines.ts';
import { createFits, type Fits, toMemoryPlaces } from '#deployments/fits.ts';
import { ReplicaRows } from '#deployments/replica-rows.ts';
import { DeploymentRows } from '#deployments/rows.ts';
import { DeploymentRuns } from '#deployments/runs.ts';
import type { OpenedCloud } from './cloud.ts';
import type { Core } from './core.ts';
import type { Models, Serving } from './inference.ts';

/** Tells whether models fit this computer and the instance types. */
export const openFits = ({ catalog }: Models, { hosts, offers, ownHostId }: OpenedCloud): Fits =>
  createFits(catalog, () => {
    const own = hosts.places().filter(({ hostId }) => hostId === ownHostId);
    return toMemoryPlaces(own, offers().all);
  });

export function openDeployments(
  core: Core,
  models: Models,
  { router }: Serving,
  { machines, fits }: { machines: EngineMachines; fits: Fits },
): Deployments {
  const { config, db, clock, log, audit, seal } = core;
  const { catalog, backends } = models;
  const hostId = readHostId(config.data_dir);
  const rows = new DeploymentRows({ db, clock, log }, seal, hostId);
  const engines = createEngines(
    { folder: join(config.data_dir, 'replicas'), home: join(config.data_dir, 'engines') },
    { clock, machines, replicaRows: new ReplicaRows(db, seal, hostId) },
  );
  const { registry } = backends;
  const runs = new DeploymentRuns(db, clock);
  const shared = { db, clock, log, audit, catalog, registry, router };
  return new Deployments({ ...shared, rows, runs, fits, engines });
}
