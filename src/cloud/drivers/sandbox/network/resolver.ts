// Finds the name servers that machines may query: the host's, without those on its loopback, which a machine
// can't reach. If none is left, the upstream servers of systemd-resolved are used.

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
