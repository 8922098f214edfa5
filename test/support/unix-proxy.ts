// A proxy between a client and a daemon's Unix socket that records requests and can break connections.

import { rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';

export interface UnixProxy {
  readonly path: string;
  /** Method and path of each request, such as `GET /1.0/…`, in order. */
  readonly requests: string[];
  /** If true, closes the open WebSockets and refuses new ones until it is called with false. */
  refuseWebSockets(refuse: boolean): void;
  close(): Promise<void>;
}

const requestLine = /(?:^|\r\n\r\n|\})((?:GET|POST|PUT|PATCH|DELETE) \/[^ ]+) HTTP\/1\.1\r\n/g;

export async function startUnixProxy(target: string, name = 'proxy'): Promise<UnixProxy> {
  const path = `${target}.${name}`;
  const requests: string[] = [];
  const pairs = new Set<readonly [Socket, Socket]>();
  const webSockets = new Set<Socket>();
  let refusing = false;

  const server = createServer((inside) => {
    const outside = connect(target);
    const pair = [inside, outside] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      webSockets.delete(inside);
      inside.destroy();
      outside.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    inside.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      for (const [, line] of text.matchAll(requestLine)) requests.push(line!);
      if (/\r\nupgrade: websocket\r\n/i.test(text)) {
        webSockets.add(inside);
        if (refusing) return end();
      }
      outside.write(chunk);
    });
    outside.on('data', (chunk) => inside.write(chunk));
  });
  rmSync(path, { force: true });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    path,
    requests,
    refuseWebSockets(refuse) {
      refusing = refuse;
      if (refuse) for (const socket of webSockets) socket.destroy();
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      await closed;
    },
  };
}
