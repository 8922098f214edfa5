// A TCP proxy in front of a server that can be taken away in two ways, and given back.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** `refused`: connections break and new ones are refused. `silent`: they stay open, and nothing is answered. */
export type Outage = 'refused' | 'silent';

export interface OutageProxy {
  /** The URL of the server through the proxy. */
  readonly url: string;
  /** Connections that were opened, including those that were refused an answer. */
  connections(): number;
  cut(outage: Outage): Promise<void>;
  /** Accepts connections again. Those that were silent stay so. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function startOutageProxy(target: string): Promise<OutageProxy> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let isSilent = false;
  let count = 0;

  function track(socket: Socket): Socket {
    sockets.add(socket);
    return socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  }

  const server = createServer((inside) => {
    count++;
    track(inside);
    if (isSilent) return;
    const outside = track(connect(Number(to.port), to.hostname));
    inside.on('close', () => outside.destroy());
    outside.on('close', () => inside.destroy());
    inside.pipe(outside);
    outside.pipe(inside);
  });

  async function listen(port: number): Promise<void> {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  }

  async function refuse(): Promise<void> {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  await listen(0);
  const { port } = server.address() as AddressInfo;
  const url = new URL(target);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    connections: () => count,
    async cut(outage) {
      if (outage === 'refused') return refuse();
      isSilent = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    async restore() {
      isSilent = false;
      if (!server.listening) await listen(port);
    },
    async close() {
      if (server.listening) await refuse();
    },
  };
}
