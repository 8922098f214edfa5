// Where engines run: as processes beside the server, or each on a machine of the cloud.

import { rm } from 'node:fs/promises';
import type { StoredReplica } from '#deployments/replica-rows.ts';
import type { Stored } from '#deployments/rows.ts';
import type { Engine, StartEngine } from './engine.ts';
import type { EngineWeights } from './engine-weights.ts';
import { type HostEngineParts, startHostEngine } from './host-engine.ts';
import {
  launchMachineEngine,
  type MachineEngineParts,
  openMachineEngine,
  releaseMachine,
} from './machine-engine.ts';

export interface Engines {
  readonly start: StartEngine;
  /** Removes the files of an earlier process, whose own engines ended with it. */
  clean(): Promise<void>;
  /** The replicas on machines of this server's deployments, which an earlier process or another server launched. */
  findLeft(): Promise<readonly StoredReplica[]>;
  /** Whether this server can connect to the machine of the replica. */
  reaches(replica: StoredReplica): Promise<boolean>;
  /** Opens the engine of a replica that an earlier process launched. */
  adopt(replica: StoredReplica): Promise<Engine>;
  /** Terminates the machine of a replica that an earlier process launched. */
  release(replica: StoredReplica): Promise<void>;
  /** Removes copies of weights that no deployment of this server needs from the hosts of machines. */
  sweepWeights(deployments: readonly Stored[]): Promise<void>;
  /** Whether there is such a place: `host`, or an instance type. */
  isPlace(runsOn: string): boolean;
}

export function createEngines(
  host: HostEngineParts,
  machine: MachineEngineParts,
  weights: EngineWeights,
): Engines {
  return {
    async start(order, watch) {
      const { spec, mount } = await weights.locate(order, watch);
      watch.report('starting');
      return spec.runs_on === 'host'
        ? startHostEngine(host, { ...order, spec })
        : launchMachineEngine(machine, { ...order, spec }, mount, watch);
    },
    clean: () => rm(host.folder, { recursive: true, force: true }),
    findLeft: () => machine.replicaRows.own(),
    async reaches({ id }) {
      const { machines } = machine;
      const state = await machines.find(id);
      return state !== undefined && machines.reaches(state.hostId);
    },
    adopt: ({ id, accountId, settings }) =>
      openMachineEngine(machine, { id, accountId, key: settings?.key ?? '' }),
    release: ({ id, accountId }) => releaseMachine(machine, accountId, id),
    sweepWeights: async (deployments) =>
      machine.machines.sweepWeights(await weights.pathsOf(deployments)),
    isPlace: (runsOn) => runsOn === 'host' || machine.machines.offers(runsOn),
  };
}
