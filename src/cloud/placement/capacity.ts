// Capacity is counted from the living instances themselves, one launch at a time: there is no counter that
// could drift, and what an instance takes is given back by the same write that ends it. Which GPU belongs
// to whom is decided here and nowhere else: engines would attach one to two machines.

import { insufficientCapacity } from '#cloud/errors.ts';
import { type RegionInfo, regions } from '#cloud/regions.ts';
import type { Database, Tx } from '#db/tables.ts';
import { chooseAddress } from './addresses.ts';
import type { Offer, Offers } from './instance-types.ts';
import { choosePlace, fits, freeGpus, type Place, type Taken } from './placement.ts';

export interface Capacity {
  /** In which regions an offer could be launched now. Advisory: another launch may be quicker. */
  available(): Promise<(offer: Offer) => RegionInfo[]>;
  /** Reserves a place inside the launch's transaction, or throws. */
  take(tx: Tx, offer: Offer, allows: (place: Place) => boolean): Promise<Reserved>;
  /** What living machines hold of a place. */
  taken(): Promise<(place: Place) => Taken>;
}

export interface Reserved {
  readonly place: Place;
  readonly address: string;
  readonly gpus: readonly string[];
}

export interface CapacityParts {
  places(): readonly Place[];
  offers(): Offers;
}

const nothing: Taken = { vcpus: 0, memoryGib: 0, gpus: new Set() };

export function createCapacity(db: Database, parts: CapacityParts): Capacity {
  async function available() {
    const counted = await count(db);
    const places = parts.places();
    return (offer: Offer) => {
      if (!hasRoom(offer, counted)) return [];
      const able = places.filter((place) => fits(offer, place, counted.of(place)));
      const names = new Set(able.map(({ region }) => region));
      return regions.filter(({ name }) => names.has(name));
    };
  }

  async function take(tx: Tx, offer: Offer, allows: (place: Place) => boolean) {
    await tx.updateTable('turns').set({ name: 'launch' }).where('name', '=', 'launch').execute();
    const counted = await count(tx);
    if (!hasRoom(offer, counted)) throw insufficientCapacity();
    // Read here again: a host may have been drained or removed since its places were known.
    const open = await tx.selectFrom('hosts').select('id').where('draining', '=', 0).execute();
    const hosts = new Set(open.map(({ id }) => id));
    const places = parts.places().filter((place) => hosts.has(place.hostId) && allows(place));
    const place = choosePlace(offer, places, counted.of);
    if (place === undefined) throw insufficientCapacity();
    const gpus = freeGpus(offer, place, counted.of(place)).slice(0, offer.type.specs.gpus);
    return {
      place,
      address: await chooseAddress(tx, place),
      gpus: offer.pool === 'gpu' ? gpus : [],
    };
  }

  const hasRoom = ({ pool }: Offer, { emulated }: { emulated: number }) =>
    pool !== 'emulated' || emulated < parts.offers().totals.emulated;

  return { available, take, taken: async () => (await count(db)).of };
}

async function count(connection: Database | Tx) {
  const sums = await connection
    .selectFrom('instances')
    .select((row) => [
      'host_id',
      'node',
      'pool',
      row.fn.countAll<number>().as('instances'),
      row.fn.sum<number>('vcpus').as('vcpus'),
      row.fn.sum<number>('memory_gib').as('memoryGib'),
    ])
    .where('status', '!=', 'terminated')
    .groupBy(['host_id', 'node', 'pool'])
    .execute();
  const gpus = await connection.selectFrom('instance_gpus').selectAll().execute();
  const takenBy = new Map<string, Taken>();
  for (const { host_id, node, vcpus, memoryGib } of sums.filter(({ pool }) => pool === 'cpu')) {
    takenBy.set(keyOf(host_id, node), { vcpus, memoryGib, gpus: new Set() });
  }
  for (const [key, rows] of Map.groupBy(gpus, ({ host_id, node }) => keyOf(host_id, node))) {
    const addresses = new Set(rows.map(({ address }) => address));
    takenBy.set(key, { ...(takenBy.get(key) ?? nothing), gpus: addresses });
  }
  return {
    of: ({ hostId, node }: Place): Taken => takenBy.get(keyOf(hostId, node)) ?? nothing,
    emulated: sums
      .filter(({ pool }) => pool === 'emulated')
      .reduce((sum, { instances }) => sum + instances, 0),
  };
}

const keyOf = (hostId: string, node: string | null) => `${hostId}/${node ?? ''}`;
