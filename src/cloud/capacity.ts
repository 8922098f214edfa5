// Capacity is counted from the living instances themselves, one launch at a time: there is no counter that
// could drift, and what an instance takes is given back by the same write that ends it.

import type { Database, Tx } from '../db/tables.ts';
import { insufficientCapacity } from './errors.ts';
import type { Offer, Offers } from './instance-types.ts';

export interface Capacity {
  /** Which offers could be launched now. Advisory: another launch may be quicker. */
  available(): Promise<(offer: Offer) => boolean>;
  /** Reserves a place inside the launch's transaction, or throws. */
  take(tx: Tx, offer: Offer): Promise<{ address: string; gpus: string[] }>;
}

/** 127.77.1.1 to 127.77.255.254: the lowest block is the host's. */
const [firstHigh, lastHigh, firstLow, lastLow] = [1, 255, 1, 254];
const addressCount = (lastHigh - firstHigh + 1) * (lastLow - firstLow + 1);

export function createCapacity(db: Database, offers: Offers): Capacity {
  async function available() {
    const taken = await count(db);
    return (offer: Offer) => fits(offer, taken);
  }

  async function take(tx: Tx, offer: Offer) {
    await tx.updateTable('turns').set({ name: 'launch' }).where('name', '=', 'launch').execute();
    const taken = await count(tx);
    if (!fits(offer, taken)) throw insufficientCapacity();
    const gpus = freeGpus(offer, taken).slice(0, offer.type.specs.gpus);
    return { address: await chooseAddress(tx), gpus: offer.pool === 'gpu' ? gpus : [] };
  }

  async function count(connection: Database | Tx) {
    const pools = await connection
      .selectFrom('instances')
      .select((row) => [
        'pool',
        row.fn.countAll<number>().as('instances'),
        row.fn.sum<number>('vcpus').as('vcpus'),
        row.fn.sum<number>('memory_gib').as('memoryGib'),
      ])
      .where('status', '!=', 'terminated')
      .groupBy('pool')
      .execute();
    const gpus = await connection.selectFrom('instance_gpus').select('address').execute();
    const of = (pool: string) => pools.find((one) => one.pool === pool);
    return {
      vcpus: of('cpu')?.vcpus ?? 0,
      memoryGib: of('cpu')?.memoryGib ?? 0,
      emulated: of('emulated')?.instances ?? 0,
      gpus: new Set(gpus.map(({ address }) => address)),
    };
  }

  type Taken = Awaited<ReturnType<typeof count>>;

  function fits(offer: Offer, taken: Taken): boolean {
    const { totals } = offers;
    switch (offer.pool) {
      case 'cpu':
        return (
          taken.vcpus + offer.vcpus <= totals.vcpus &&
          taken.memoryGib + offer.memoryGib <= totals.memoryGib
        );
      case 'gpu':
        return freeGpus(offer, taken).length >= offer.type.specs.gpus;
      case 'emulated':
        return taken.emulated < totals.emulated;
      default:
        return false;
    }
  }

  function freeGpus({ gpuModel }: Offer, taken: Taken): string[] {
    return offers.totals.gpus
      .filter(({ model, address }) => model === gpuModel && !taken.gpus.has(address))
      .map(({ address }) => address);
  }

  return { available, take };
}

/** Starts at a random place, so that a new machine seldom has the address of one that just went. */
async function chooseAddress(tx: Tx): Promise<string> {
  const rows = await tx
    .selectFrom('instances')
    .select('address')
    .where('status', '!=', 'terminated')
    .execute();
  const taken = new Set(rows.map(({ address }) => address));
  const start = Math.floor(Math.random() * addressCount);
  for (let step = 0; step < addressCount; step++) {
    const place = (start + step) % addressCount;
    const lows = lastLow - firstLow + 1;
    const address = `127.77.${firstHigh + Math.floor(place / lows)}.${firstLow + (place % lows)}`;
    if (!taken.has(address)) return address;
  }
  throw insufficientCapacity();
}
