// Where engines run: as processes beside the server, or each on a machine of the cloud.

import { rm } from 'node:fs/promises';
import { type StoredReplica, TakenOver } from '#deployments/ground/replica-rows.ts';
import type { Stored } from '#deployments/ground/rows.ts';
import type { Engine, StartEngine } from './engine.ts';
import { FlawedStart, findFlaw } from './engine-files.ts';
import type { EngineWeights } from './engine-weights.ts';
import { type HostEngineParts, startHostEngine } from './host-engine.ts';
import { type MachineEngineParts, openMachineEngine, releaseMachine } from './machine-engine.ts';
import { launchMachineEngine } from './machine-launch.ts';

export interface Engines {
  readonly start: StartEngine;
  /** Removes the files of an earlier process, whose own engines ended with it. */
  clean(): Promise<void>;
  /** The replicas on machines of this server's deployments, which an earlier process or another server launched. */
  findLeft(): Promise<readonly StoredReplica[]>;
  /** Takes replicas of removed deployments from lost servers, to release them. Returns how many there were. */
  takeOrphans(lost: ReadonlySet<string>): Promise<number>;
  /** The host of the replica's machine; null if it is gone. */
  findHost(replica: StoredReplica): Promise<string | null>;
  /** Whether this server can launch machines of the type. */
  canLaunch(type: string): boolean;
  /** Opens the engine of a replica that an earlier process launched. */
  adopt(replica: StoredReplica): Promise<Engine>;
  /** Terminates the machine of a replica that an earlier process launched. Does nothing if another server runs it now. */
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
      // Weights of a machine are checked where they are, on this computer.
      const flaw = await findFlaw({ ...spec, source: mount ?? spec.source });
      if (flaw !== undefined) throw new FlawedStart(flaw);
      watch.report('starting');
      return spec.runs_on === 'host'
        ? startHostEngine(host, { ...order, spec })
        : launchMachineEngine(machine, { ...order, spec }, mount, watch);
    },
    clean: () => rm(host.folder, { recursive: true, force: true }),
    findLeft: () => machine.replicaRows.own(),
    takeOrphans: (lost) => machine.replicaRows.takeOrphans(lost),
    findHost: async ({ id }) => (await machine.machines.find(id))?.hostId ?? null,
    canLaunch: (type) => machine.machines.canLaunch(type),
    adopt: ({ id, accountId, settings }) =>
      openMachineEngine(machine, { id, accountId, key: settings?.key ?? '' }),
    async release({ id, accountId }) {
      await releaseMachine(machine, accountId, id).catch((error) => {
        if (!(error instanceof TakenOver)) throw error;
      });
    },
    sweepWeights: async (deployments) =>
      machine.machines.sweepWeights(await weights.pathsOf(deployments)),
    isPlace: (runsOn) => runsOn === 'host' || machine.machines.offers(runsOn),
  };
}
