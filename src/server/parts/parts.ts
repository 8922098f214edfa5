// Every part of the server, opened in the order in which they depend on each other. Nothing listens yet.

import type { Config } from '#config/schema.ts';
import type { Clock } from '#lib/clock.ts';
import type { PasswordCost } from '#lib/secrets/secrets.ts';
import { createDashboardBuild, type DashboardBuild } from '#server/dashboard-build.ts';
import { openAccounts, openUsage } from './accounts.ts';
import { openBatches } from './batches.ts';
import { openCloud } from './cloud.ts';
import { openCore } from './core.ts';
import { openDeployments, openFits } from './deployments.ts';
import { openModels, openServing } from './inference.ts';

export type Parts = Awaited<ReturnType<typeof openParts>>;

/** What tests choose otherwise: each has a default. */
export interface PartOptions {
  passwordCost?: PasswordCost | undefined;
  dashboard?: DashboardBuild | undefined;
}

export async function openParts(config: Config, clock: Clock, options: PartOptions) {
  const core = await openCore(config, clock);
  const accounts = openAccounts(core, () => cloud.reconciler.nudge(), options.passwordCost);
  const usage = openUsage(core);
  const cloud = await openCloud(core);
  const models = await openModels(core, cloud.modelGpus);
  const serving = await openServing(core, accounts, usage, models);
  const fits = openFits(models, cloud);
  return {
    core,
    accounts,
    usage,
    models,
    serving,
    batches: openBatches(core, models, serving),
    ...openDeployments(core, models, serving, {
      machines: cloud.engineMachines,
      offers: cloud.offers,
      fits,
    }),
    fits,
    cloud,
    dashboard: options.dashboard ?? createDashboardBuild(core.log),
  };
}
