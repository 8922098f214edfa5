// Machines for the engines of deployments. They are instances as any other, launched and terminated by rows. The server
// reaches their engines through the driver, and nobody can log in.

import type { Duplex } from 'node:stream';
import { serverOf } from '#accounts/audit/audit.ts';
import { DriverError } from '#cloud/drivers/driver.ts';
import { isCapacityMissing, noHostOffers } from '#cloud/errors.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import { createOffers, type Offers } from '#cloud/placement/instance-types.ts';
import type { Place } from '#cloud/placement/place.ts';
import type { InstanceStatus } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { InstanceEvents } from './instance-events.ts';
import type { Instances } from './instances.ts';
import type { LaunchInstance } from './launch.ts';
import type { MachineMeter } from './machine-meter.ts';

export interface EngineMachineOrder {
  readonly id: string;
  readonly accountId: string;
  readonly deploymentId: string;
  readonly deploymentName: string;
  readonly instanceType: string;
  /** Family of the image; null for the host's default. */
  readonly image: string | null;
  /** Sealed for the machine's id. */
  readonly userData: string;
  /** Path on this computer of what the machine sees as its weights; null if there are none. */
  readonly weights: string | null;
}

export interface EngineMachineState {
  readonly id: string;
  readonly status: InstanceStatus;
  readonly statusReason: string | null;
  readonly hostId: string;
  readonly memoryGib: number;
}

export interface EngineMachines {
  /** Whether the type is listed, even if no host has machines of it. */
  offers(type: string): boolean;
  /** Whether a host that this server reaches has machines of the type. They may all be in use. */
  canLaunch(type: string): boolean;
  /**
   * `writeRows` runs in the transaction of the launch. Returns false if every host that could run
   * the machine is full or silent now. Throws CloudError if it is refused.
   */
  launch(order: EngineMachineOrder, writeRows: (tx: Tx) => Promise<void>): Promise<boolean>;
  /** Terminates the machine. Does nothing more than `writeRows` if it is gone. */
  release: Instances['release'];
  find(id: string): Promise<EngineMachineState | undefined>;
  /** Calls back when the machine may have changed. Returns a function that ends it. */
  watch(accountId: string, id: string, changed: () => void): () => void;
  /** Whether this server can connect to machines of the host now. */
  reaches(hostId: string): boolean;
  /** Throws DriverError. */
  connect(hostId: string, id: string, port: number): Promise<Duplex>;
  /** Removes copies of weights on the hosts that hold none of the sources. Hosts that don't answer keep theirs. */
  sweepWeights(sources: readonly string[]): Promise<void>;
  /** Runs a command in the machine, and returns its exit code. Throws DriverError. */
  run(hostId: string, id: string, command: readonly string[]): Promise<number>;
  /** Undefined if the host does not answer. */
  bootLog(hostId: string, id: string): Promise<string | undefined>;
  readonly measure: MachineMeter;
}

export interface EngineMachineParts {
  readonly launch: LaunchInstance;
  readonly instances: Instances;
  readonly events: InstanceEvents;
  readonly meter: MachineMeter;
  readonly hosts: Pick<Hosts, 'driverOf' | 'monitors' | 'reachable' | 'places'>;
  offers(): Offers;
}

export function createEngineMachines(db: Database, parts: EngineMachineParts): EngineMachines {
  const { instances, events, hosts } = parts;
  const reaches = (hostId: string) => hosts.driverOf(hostId)?.connect !== undefined;
  return {
    offers: (type) => parts.offers().find(type) !== undefined,
    canLaunch: (type) => isOffered(type, hosts.places(), reaches),
    async launch(order, writeRows) {
      const { deploymentName: name, image } = order;
      const input = {
        region_name: null,
        instance_type_name: order.instanceType,
        ssh_key_names: [],
        name: `${name.slice(0, 55)}-${order.id.slice(0, 8)}`,
        user_data: order.userData,
        tags: [{ key: 'deployment', value: name }],
        ...(image !== null && { image: { family: image } }),
      };
      const owner = {
        deploymentId: order.deploymentId,
        instanceId: order.id,
        weights: order.weights,
        // The engine is reached from this server.
        isAllowed: ({ hostId }: Place) => reaches(hostId),
        writeRows,
      };
      try {
        await parts.launch(serverOf(order.accountId), input, owner);
        return true;
      } catch (error) {
        if (!isCapacityMissing(error)) throw error;
        if (!mayBecomeFree(parts, order.instanceType)) throw noHostOffers(order.instanceType);
        return false;
      }
    },
    release: instances.release,
    find: (id) =>
      db
        .selectFrom('instances')
        .select(['id', 'status', 'status_reason as statusReason', 'host_id as hostId'])
        .select('memory_gib as memoryGib')
        .where('id', '=', id)
        .executeTakeFirst(),
    watch: (accountId, id, changed) =>
      events.subscribe(accountId, ({ instanceId }) => {
        if (instanceId === id) changed();
      }),
    reaches,
    async connect(hostId, id, port) {
      const driver = hosts.driverOf(hostId);
      if (driver?.connect === undefined)
        throw new DriverError('unavailable', 'The host does not answer.');
      return driver.connect(id, port);
    },
    async sweepWeights(sources) {
      for (const id of hosts.reachable())
        await hosts
          .driverOf(id)
          ?.sweepWeights?.(sources)
          .catch(() => {});
    },
    async run(hostId, id, command) {
      const driver = hosts.driverOf(hostId);
      if (driver?.run === undefined)
        throw new DriverError('unavailable', 'The host runs no commands in its machines.');
      return driver.run(id, command);
    },
    bootLog: async (hostId, id) => hosts.driverOf(hostId)?.bootLog(id),
    measure: parts.meter,
  };
}

/** False also if only another server's own host offers the type: to wait for that would be in vain. */
const mayBecomeFree = ({ offers, hosts }: EngineMachineParts, type: string) =>
  offers().find(type)?.pool === 'emulated' || isOffered(type, hosts.places(), hosts.monitors);

function isOffered(
  type: string,
  places: readonly Place[],
  isAllowed: (hostId: string) => boolean,
): boolean {
  const allowed = places.filter(({ hostId }) => isAllowed(hostId));
  const offers = createOffers(allowed, { emulate: false, emulatedInstances: 0, prices: {} });
  return (offers.find(type)?.pool ?? null) !== null;
}
