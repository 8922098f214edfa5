// A port of 127.0.0.1 that leads into a machine: each connection to it is continued by the machine's driver.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Tunnel {
  readonly port: number;
  /** Cuts all connections. */
  close(): void;
}

/** More than an engine answers at once. */
const maxConnections = 1_000;

export async function openTunnel(connect: () => Promise<Duplex>): Promise<Tunnel> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    connect().then(
      (inside) => join(socket, inside),
      () => socket.destroy(),
    );
  });
  server.maxConnections = maxConnections;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function join(socket: Socket, inside: Duplex): void {
  inside.on('error', () => socket.destroy());
  // What has arrived is still sent.
  inside.once('close', () => socket.destroySoon());
  socket.once('close', () => inside.destroy());
  if (socket.destroyed) inside.destroy();
  socket.pipe(inside).pipe(socket);
}
