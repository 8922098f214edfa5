// Reads a response with Node's own HTTP client over a loopback socket, to compare the response parser with.

import { once } from 'node:events';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';

export interface NodeResponse {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  /** As latin1 text. */
  readonly body: string;
}

export interface NodeClient extends AsyncDisposable {
  /** Null if Node refuses the response, or if it is cut off. The lenient parser accepts much of what is invalid. */
  read(text: string, parser?: 'strict' | 'lenient'): Promise<NodeResponse | null>;
}

/** Starts a server that answers each connection with a given text. One response is read at a time. */
export async function createNodeClient(): Promise<NodeClient> {
  let answer = '';
  const server = createServer((socket) => {
    // Node resets the connection of a response that it refuses.
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer, 'latin1'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    async read(text, parser = 'strict') {
      answer = text;
      const insecureHTTPParser = parser === 'lenient';
      const options = { host: '127.0.0.1', port, agent: false, joinDuplicateHeaders: true };
      return await receive(get({ ...options, insecureHTTPParser }));
    },
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}

async function receive(request: ClientRequest): Promise<NodeResponse | null> {
  const closed = new Promise((resolve) => request.once('close', resolve));
  // Every failure is reported again where it is awaited.
  request.on('error', () => {});
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const parts = (await response.toArray()) as Buffer[];
    const body = Buffer.concat(parts).toString('latin1');
    return { status: response.statusCode ?? 0, headers: response.headers, body };
  } catch {
    return null;
  } finally {
    request.destroy();
    await closed;
  }
}
