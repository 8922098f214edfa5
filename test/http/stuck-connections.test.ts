// A response that the client does not read is given up; one that takes long is not.

import assert from 'node:assert';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { closeStuckConnections } from '#http/stuck-connections.ts';

test('a connection whose client does not read is closed, and a slow response is not', async (t) => {
  const server = createServer({ keepAliveTimeout: 1 });
  t.after(() => server.close());
  closeStuckConnections(server, 50);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const responses = new Map<string | undefined, ServerResponse>();
  server.on('request', ({ url }, response) => responses.set(url, response));
  const ask = async (path: string) => {
    const socket = connect(port, '127.0.0.1');
    const asked = once(server, 'request');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await asked;
    return socket;
  };
  const slow = await ask('/slow');
  await ask('/stuck');
  const stuck = responses.get('/stuck') as ServerResponse;
  stuck.end(Buffer.alloc(50_000_000));
  // Closes: otherwise the test would time out. The slow one was silent for longer.
  await once(stuck, 'close');
  assert.equal(stuck.writableFinished, false);
  responses.get('/slow')?.end('at last');
  const [received] = await once(slow, 'data');
  assert.match(String(received), /at last/);
  // An idle connection is closed as before.
  await once(slow, 'close');
});
