// The network that stands for a client where clients are counted by their address.

import { isIPv6 } from 'node:net';

/** One customer of an IPv6 network has at least a /64, so its addresses count as one. */
export function toNetwork(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? [];
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const [first, last] = [groups(head), groups(tail ?? '')];
  const zeros = Array(Math.max(0, 8 - first.length - last.length)).fill('0');
  return [...first, ...(tail === undefined ? [] : zeros), ...last].slice(0, 4).join(':');
}
