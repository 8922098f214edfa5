// The address a new machine gets: a free one of its host's range, from a random place on, so that it seldom
// has the address of a machine that just went.

import { insufficientCapacity } from '#cloud/errors.ts';
import type { Tx } from '#db/tables.ts';
import type { Place } from './placement.ts';

/** The lowest block is the host's own. */
const loopback: NonNullable<Place['addressPool']> = { first: '127.77.1.1', last: '127.77.255.254' };

/** Empty where the driver chooses. */
export async function chooseAddress(tx: Tx, { poolHosts, addressPool }: Place): Promise<string> {
  if (addressPool === null) return '';
  let living = tx.selectFrom('instances').select('address').where('status', '!=', 'terminated');
  // Two servers may run on one computer, whose loopback addresses they share: those stay apart everywhere.
  if (addressPool !== undefined) living = living.where('host_id', 'in', poolHosts);
  const { first, last, except = [] } = addressPool ?? loopback;
  const used = (await living.execute()).map(({ address }) => address);
  const taken = new Set([...used, ...except].map(toNumber));
  const from = toNumber(first);
  const count = toNumber(last) - from + 1;
  const start = Math.floor(Math.random() * count);
  for (let step = 0; step < count; step++) {
    const address = from + ((start + step) % count);
    if (!taken.has(address) && isPlain(address)) return toText(address);
  }
  throw insufficientCapacity();
}

/** .0 and .255 look like networks to people and tools. */
const isPlain = (address: number) => address % 256 !== 0 && address % 256 !== 255;

const toNumber = (text: string) =>
  text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

const toText = (address: number) =>
  [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(address / unit) % 256).join('.');
