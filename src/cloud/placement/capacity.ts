// Capacity is counted from the instances themselves, one launch at a time. There is no counter that could
// drift: the write that ends an instance also frees what it used. GPUs are assigned here and nowhere else,
// because engines would attach one GPU to two machines.

import { insufficientCapacity, insufficientDisk } from '#cloud/errors.ts';
import { type RegionInfo, regions } from '#cloud/regions.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import { describeDisk } from '#lib/errors.ts';
import { reserveAddress } from './addresses.ts';
import type { Offer } from './instance-types.ts';
import { lockLaunches } from './lock-launches.ts';
import type { Place } from './place.ts';
import { type Allocated, choosePlace, fits, freeGpus } from './placement.ts';

export interface Capacity {
  /** Finds the regions where an offer could be launched now. Advisory: another launch may come first. */
  available(): Promise<(offer: Offer) => RegionInfo[]>;
  /** Says why an offer can't be launched anywhere now; null if it can. */
  obstacles(): Promise<(offer: Offer) => string | null>;
  /** Reserves a place within the transaction of a launch. Throws if none fits. */
  reserve(tx: Tx, offer: Offer, allows: (place: Place) => boolean): Promise<PlaceReservation>;
}

export interface PlaceReservation {
  readonly place: Place;
  readonly address: string;
  readonly gpus: readonly string[];
}

export interface CapacityParts {
  places(): readonly Place[];
  /** Maximum number of emulated instances that exist at once. */
  maxEmulated: number;
  /** The disk of this server's host; null if it is not known or has no bound. */
  ownDisk(): Promise<HostDisk | null>;
}

export interface HostDisk {
  readonly hostId: string;
  readonly freeGib: number;
  /** What machines and filesystems leave free. If no more is free, nothing is launched there. */
  readonly reserveGib: number;
  /** True if each machine there gets the whole space of its disk when it is created. */
  readonly promises: boolean;
  /** Space that a new filesystem takes there at least. */
  readonly filesystemGib: number;
}

const nothing: Allocated = { vcpus: 0, memoryGib: 0, gpus: new Set() };

export function createCapacity(db: Database, parts: CapacityParts): Capacity {
  return {
    available: async () => (await findRoom(db, parts)).regionsOf,
    async obstacles() {
      const room = await findRoom(db, parts);
      const isOpen = parts.places().some(({ accepting }) => accepting);
      return (offer) => (room.regionsOf(offer).length > 0 ? null : explain(offer, room, isOpen));
    },

    async reserve(tx, offer, allows) {
      await lockLaunches(tx);
      const counted = await countAllocated(tx);
      if (!hasRoom(parts, offer, counted)) throw insufficientCapacity();
      // Read again under the lock: a host may have been drained or removed since its places were listed.
      const open = await tx.selectFrom('hosts').select('id').where('draining', '=', 0).execute();
      const hosts = new Set(open.map(({ id }) => id));
      const places = parts.places().filter((place) => hosts.has(place.hostId) && allows(place));
      const { disk, hasDisk } = await readDisk(parts, counted.waitingGib);
      const roomy = places.filter((place) => hasDisk(offer, place));
      const place = choosePlace(offer, roomy, counted.on);
      if (place === undefined) {
        const isDiskAtFault = choosePlace(offer, places, counted.on) !== undefined;
        throw disk !== null && isDiskAtFault
          ? insufficientDisk(offer.storageGib, disk)
          : insufficientCapacity();
      }
      const gpus = freeGpus(offer, place, counted.on(place)).slice(0, offer.type.specs.gpus);
      return {
        place,
        address: await reserveAddress(tx, place),
        gpus: offer.pool === 'gpu' ? gpus : [],
      };
    },
  };
}

const hasRoom = (parts: CapacityParts, { pool }: Offer, { emulated }: { emulated: number }) =>
  pool !== 'emulated' || emulated < parts.maxEmulated;

/** Returns this host's disk, and whether the disk of a place has room for an offer. */
async function readDisk(parts: CapacityParts, waitingOn: (hostId: string) => number) {
  const own = await parts.ownDisk();
  const disk = own && { ...own, promisedGib: own.promises ? waitingOn(own.hostId) : 0 };
  const hasDisk = ({ storageGib }: Offer, { hostId }: Place) =>
    disk === null ||
    hostId !== disk.hostId ||
    disk.freeGib - disk.reserveGib - disk.promisedGib >= (disk.promises ? storageGib : 0);
  return { disk, hasDisk };
}

async function findRoom(db: Database, parts: CapacityParts) {
  const counted = await countAllocated(db);
  const { disk, hasDisk } = await readDisk(parts, counted.waitingGib);
  /** The places that fit, whatever their disks. */
  const placesOf = (offer: Offer) =>
    hasRoom(parts, offer, counted)
      ? parts.places().filter((place) => fits(offer, place, counted.on(place)))
      : [];
  const regionsOf = (offer: Offer) => {
    const fitting = placesOf(offer).filter((place) => hasDisk(offer, place));
    const names = new Set(fitting.map(({ region }) => region));
    return regions.filter(({ name }) => names.has(name));
  };
  return { disk, placesOf, regionsOf };
}

/** Why an offer has no capacity anywhere. */
function explain(
  offer: Offer,
  { disk, placesOf }: Awaited<ReturnType<typeof findRoom>>,
  isOpen: boolean,
): string {
  if (offer.pool === null) {
    const what = offer.type.specs.gpus > 0 ? 'has this GPU' : 'offers this size';
    return `No host ${what}. It is listed for its price only.`;
  }
  if (!isOpen) return 'No host accepts machines now: all are offline or drained.';
  if (disk !== null && placesOf(offer).length > 0)
    return `Its disk takes ${offer.storageGib} GiB, but ${describeDisk(disk)}.`;
  return offer.pool === 'emulated'
    ? 'All emulated machines are in use.'
    : 'Every host that could run it is full. Terminate a machine, or add a host.';
}

/** Counts what instances and models use of each place. */
export async function countAllocated(connection: Database | Tx) {
  const sums = await connection
    .selectFrom('instances')
    .select((row) => [
      'host_id',
      'node',
      'pool',
      row.fn.countAll<number>().as('instances'),
      row.fn.sum<number>('vcpus').as('vcpus'),
      row.fn.sum<number>('memory_gib').as('memoryGib'),
      row.fn
        .sum<number>('storage_gib')
        .filterWhere('asked_at', 'is', null)
        .filterWhere('status', '=', 'booting')
        .as('waitingGib'),
    ])
    .where('status', '!=', 'terminated')
    .groupBy(['host_id', 'node', 'pool'])
    .execute();
  const gpus = await connection
    .selectFrom('instance_gpus')
    .select(['host_id', 'node', 'address'])
    .unionAll((union) =>
      union
        .selectFrom('model_gpus')
        .select(({ val }) => ['host_id', val('').as('node'), 'address']),
    )
    .execute();
  const allocated = new Map<string, Allocated>();
  for (const { host_id, node, vcpus, memoryGib } of sums.filter(({ pool }) => pool === 'cpu')) {
    allocated.set(toKey(host_id, node), { vcpus, memoryGib, gpus: new Set() });
  }
  for (const [key, rows] of Map.groupBy(gpus, ({ host_id, node }) => toKey(host_id, node))) {
    const addresses = new Set(rows.map(({ address }) => address));
    allocated.set(key, { ...(allocated.get(key) ?? nothing), gpus: addresses });
  }
  return {
    on: ({ hostId, node }: Place): Allocated => allocated.get(toKey(hostId, node)) ?? nothing,
    /** Disk space of instances that their host has not created yet. */
    waitingGib: (hostId: string): number =>
      sums
        .filter(({ host_id }) => host_id === hostId)
        .reduce((sum, { waitingGib }) => sum + Number(waitingGib ?? 0), 0),
    emulated: sums
      .filter(({ pool }) => pool === 'emulated')
      .reduce((sum, { instances }) => sum + instances, 0),
  };
}

const toKey = (hostId: string, node: string | null) => `${hostId}/${node ?? ''}`;
