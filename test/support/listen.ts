// Listens on a free port until the test ends. Returns the port.

import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { TestContext } from 'node:test';

export async function listen(test: TestContext, server: Server, host = '127.0.0.1') {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, host);
  await once(server, 'listening');
  test.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
