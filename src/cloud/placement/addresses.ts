// The address of a new instance: a free one in its host's range. The search starts at a random address, so
// that a new instance seldom gets the address of one that has just ended.

import { insufficientCapacity } from '#cloud/errors.ts';
import type { Tx } from '#db/tables/tables.ts';
import type { Place } from './place.ts';

/** The loopback addresses for machines, without the lowest block, which belongs to the host. */
const loopback: NonNullable<Place['addressPool']> = { first: '127.77.1.1', last: '127.77.255.254' };

/** Returns an empty string if the driver chooses the address. */
export async function reserveAddress(tx: Tx, { poolHosts, addressPool }: Place): Promise<string> {
  if (addressPool === null) return '';
  let used = tx.selectFrom('instances').select('address').where('status', '!=', 'terminated');
  // Loopback addresses are unique across all hosts: two servers on one computer share them.
  if (addressPool !== undefined) used = used.where('host_id', 'in', poolHosts);
  const { first, last, except = [] } = addressPool ?? loopback;
  const addresses = (await used.execute()).map(({ address }) => address);
  const taken = new Set([...addresses, ...except].map(toNumber));
  const from = toNumber(first);
  const count = toNumber(last) - from + 1;
  const start = Math.floor(Math.random() * count);
  for (let step = 0; step < count; step++) {
    const address = from + ((start + step) % count);
    if (!taken.has(address) && isOrdinary(address)) return toText(address);
  }
  throw insufficientCapacity();
}

/** People and tools take .0 and .255 for network and broadcast addresses. */
const isOrdinary = (address: number) => address % 256 !== 0 && address % 256 !== 255;

const toNumber = (text: string) =>
  text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

const toText = (address: number) =>
  [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(address / unit) % 256).join('.');
