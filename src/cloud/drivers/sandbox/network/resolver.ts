// The name servers that machines may ask: the host's, except those that listen on its own loopback,
// which a machine can't reach; then the ones behind systemd-resolved are meant.

import { readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';

export async function findNameservers(): Promise<string[]> {
  for (const file of ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf']) {
    const servers = parseNameservers(await readFile(file, 'utf8').catch(() => ''));
    if (servers.length > 0) return servers;
  }
  return [];
}

export function parseNameservers(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([word]) => word === 'nameserver')
    .map(([, address]) => address ?? '')
    .filter((address) => isIPv4(address) && !address.startsWith('127.'))
    .slice(0, 3);
}
