// Deployments: engines that this server runs by itself, as backends of models.

import { resolve } from 'node:path';
import { readHostId } from '#cloud/hosts/own-host.ts';
import type { EngineMachines } from '#cloud/instances/engine-machines.ts';
import type { Offers } from '#cloud/placement/instance-types.ts';
import { DeploymentRuns } from '#deployments/cost/runs.ts';
import { Deployments } from '#deployments/deployments.ts';
import { createEngineWeights } from '#deployments/engines/engine-weights.ts';
import { createEngines } from '#deployments/engines/engines.ts';
import { createFits, type Fits, toMemoryPlaces } from '#deployments/fits/fits.ts';
import { ReplicaRows } from '#deployments/ground/replica-rows.ts';
import { DeploymentRows } from '#deployments/ground/rows.ts';
import { LiveDeployments } from '#deployments/life/live-deployments.ts';
import { watchDeployments } from '#deployments/metrics.ts';
import { PeerService } from '#deployments/peers/peer-service.ts';
import type { PeerParts } from '#deployments/peers/routes.ts';
import { ServerRows } from '#deployments/peers/server-rows.ts';
import { createHostMeter } from '#deployments/stats/host-meter.ts';
import { measureForeignMemory } from '#gpu/memory-in-use.ts';
import { isSingleServer } from '#server/options/single-server.ts';
import type { OpenedCloud } from './cloud.ts';
import type { Core } from './core.ts';
import type { Models, Serving } from './inference.ts';

/** Tells whether models fit this computer and the instance types. */
export const openFits = (
  { catalog, weights }: Models,
  { hosts, offers, ownHostId }: OpenedCloud,
): Fits =>
  createFits(catalog, weights.store, async () => {
    const own = hosts.places().filter(({ hostId }) => hostId === ownHostId);
    const hasGpus = own.some(({ gpus }) => gpus.length > 0);
    return toMemoryPlaces(own, offers().all, hasGpus ? await measureForeignMemory() : new Map());
  });

export function openDeployments(
  core: Core,
  models: Models,
  { router }: Serving,
  { machines, offers, fits }: { machines: EngineMachines; offers: () => Offers; fits: Fits },
): { deployments: Deployments; liveDeployments: LiveDeployments; peers: PeerParts | null } {
  const { config, db, clock, log, audit, seal } = core;
  const { catalog, backends, weights } = models;
  const hostId = readHostId(config.data_dir);
  const rows = new DeploymentRows({ db, clock, log }, seal, hostId);
  const { store, fetches } = weights;
  const engineWeights = createEngineWeights({ catalog, store, fetches, checkMemory: fits.check });
  const engines = createEngines(
    // Absolute, because an engine has a working directory of its own.
    {
      clock,
      folder: resolve(config.data_dir, 'replicas'),
      home: resolve(config.data_dir, 'engines'),
      meter: createHostMeter(),
    },
    { clock, log, machines, replicaRows: new ReplicaRows(db, seal, hostId) },
    engineWeights,
  );
  weights.pulls.usersOf = async (candidates) => engineWeights.usersOf(await rows.own(), candidates);
  const { registry } = backends;
  const runs = new DeploymentRuns(db, clock);
  const hourlyCents = (type: string) => offers().find(type)?.type.price_cents_per_hour ?? 0;
  const servers = isSingleServer(config)
    ? null
    : new ServerRows(db, clock, seal, { id: hostId, url: config.server.peer_url });
  const endPulls = () => weights.pulls.endUnneeded();
  const shared = { clock, log, rows, runs, engines, hourlyCents };
  const live = new LiveDeployments({ ...shared, registry, router, servers, endPulls });
  watchDeployments(core.metrics, live, runs);
  const service = new PeerService(live, registry, router);
  return {
    deployments: new Deployments({ ...shared, db, audit, catalog, fits, live, servers }),
    liveDeployments: live,
    peers: servers && { service, key: servers.key },
  };
}
