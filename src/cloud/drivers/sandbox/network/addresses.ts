// Each machine has a loopback address, which clients on the host use, and a private address with the same
// last two octets for its own interface. Either follows from the other, so only one is stored.

import { isIPv4 } from 'node:net';
import { DriverError } from '#cloud/drivers/driver.ts';

export interface AddressRange {
  /** First two octets of the loopback addresses, e.g. `127.77`. */
  readonly loopback: string;
  /** First two octets of the private addresses, e.g. `10.77`. */
  readonly private: string;
}

export const defaultRange: AddressRange = { loopback: '127.77', private: '10.77' };

/** Searches from an address derived from the id, so that two servers on one host seldom collide. */
export function chooseLoopbackAddress(
  range: AddressRange,
  id: string,
  taken: ReadonlySet<string>,
): string {
  const start = Number.parseInt(id.slice(0, 4), 16);
  for (let step = 0; step < 65_536; step += 1) {
    const [high, low] = split((start + step) % 65_536);
    // The lowest block holds the gateway; .0 and .255 look like network addresses.
    if (high === 0 || low === 0 || low === 255) continue;
    const address = `${range.loopback}.${high}.${low}`;
    if (!taken.has(address)) return address;
  }
  throw new DriverError('unavailable', `Every address in ${range.loopback}.0.0/16 is taken.`);
}

export function checkAddress(range: AddressRange, address: string): string {
  const inside = isIPv4(address) && address.startsWith(`${range.loopback}.`);
  if (!inside || address.split('.')[2] === '0') {
    throw new DriverError('impossible', `${address} is not an address for machines of this host.`);
  }
  return address;
}

export function toPrivateAddress(range: AddressRange, address: string): string {
  return `${range.private}.${address.split('.').slice(2).join('.')}`;
}

export function gatewayOf(range: AddressRange): string {
  return `${range.private}.0.1`;
}

function split(number: number): [number, number] {
  return [number >> 8, number & 255];
}
