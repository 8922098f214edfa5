// Bounds of open connections. Half of the files that this process may open are left to the server
// itself: connections to backends and the database, engines, threads and files on disk. No client
// may take all of the others.

import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { KeyCounts } from '#lib/memory/key-counts.ts';
import { toNetwork } from '#lib/network/client-network.ts';

/** `maxPerClient` is null if all connections come from proxies. */
export function limitConnections(server: Server, maxPerClient: number | null): void {
  const maxFiles = findMaxFiles();
  const max = maxFiles === null ? null : Math.floor(maxFiles / 2);
  if (max !== null) server.maxConnections = max;
  if (maxPerClient === null) return;
  const counts = new KeyCounts();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    // A proxy on this computer may not be listed as one.
    if (remoteAddress === undefined || loopback.test(remoteAddress)) return;
    const client = toNetwork(remoteAddress);
    if (counts.get(client) >= Math.min(maxPerClient, (max ?? Infinity) / 2))
      return void socket.destroy();
    counts.add(client);
    socket.once('close', () => counts.remove(client));
  });
}

const loopback = /^(::ffff:)?127\.|^::1$/;

/** Null if there is no limit, or if it is not known: only Linux has the file. */
function findMaxFiles(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}
