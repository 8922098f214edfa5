// Deployments: engines that this server runs by itself, as backends of models.

import { join } from 'node:path';
import { readHostId } from '#cloud/hosts/own-host.ts';
import { Deployments } from '#deployments/deployments.ts';
import { DeploymentRows } from '#deployments/rows.ts';
import { DeploymentRuns } from '#deployments/runs.ts';
import type { Core } from './core.ts';
import type { Models, Serving } from './inference.ts';

export function openDeployments(core: Core, models: Models, { router }: Serving): Deployments {
  const { config, db, clock, log, audit } = core;
  const { catalog, seal, backends } = models;
  const rows = new DeploymentRows({ db, clock, log }, seal, readHostId(config.data_dir));
  const folder = join(config.data_dir, 'replicas');
  const home = join(config.data_dir, 'engines');
  const { registry } = backends;
  const runs = new DeploymentRuns(db, clock);
  const shared = { db, clock, log, audit, catalog, registry, router };
  return new Deployments({ ...shared, rows, runs, folder, home });
}
