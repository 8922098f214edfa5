// The request timeout cuts off a slow body, except on routes that allow long uploads.

import assert from 'node:assert';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { allowLongBody, hasLongBody } from '#http/body/upload-timeout.ts';

for (const [isLong, expected] of [
  [true, 'all of it'],
  [false, 'cut'],
] as const) {
  test(`a body that outlasts the request timeout is ${isLong ? 'read to its end on a route that allows it' : 'cut off'}`, async () => {
    const timeouts = { requestTimeout: 300, headersTimeout: 300, connectionsCheckingInterval: 50 };
    const server = createServer(timeouts, (incoming, response) => {
      if (isLong) allowLongBody(incoming);
      incoming.resume().once('end', () => response.end('all of it'));
    });
    const timedOut = Promise.withResolvers<void>();
    server.on('clientError', (error: Error & { code?: string }, socket) => {
      const isTimeout = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
      if (isTimeout) timedOut.resolve();
      if (isTimeout && hasLongBody(socket)) return;
      socket.destroy();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const sent = request({ port, host: '127.0.0.1', method: 'POST' });
    const answered = new Promise<string>((resolve) => {
      sent.once('error', () => resolve('cut'));
      sent.once('response', async (response) => resolve((await response.toArray()).join('')));
    });
    sent.write('first part');
    await timedOut.promise;
    sent.end('last part');
    assert.equal(await answered, expected);
    server.close();
    server.closeAllConnections();
  });
}
