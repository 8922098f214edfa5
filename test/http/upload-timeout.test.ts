// A long upload outlives the time limit that every other request has; a silent one doesn't.

import assert from 'node:assert';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allowLongBody, hasLongBody } from '#http/body/upload-timeout.ts';

for (const [isLong, expected] of [
  [true, 'all of it'],
  [false, 'cut'],
] as const) {
  test(`a body that takes too long is ${isLong ? 'heard out where that is allowed' : 'cut'}`, async () => {
    const limits = { requestTimeout: 300, headersTimeout: 300, connectionsCheckingInterval: 50 };
    const server = createServer(limits, (incoming, response) => {
      if (isLong) allowLongBody(incoming);
      incoming.resume().once('end', () => response.end('all of it'));
    });
    server.on('clientError', (error: Error & { code?: string }, socket) => {
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && hasLongBody(socket)) return;
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
    for (let part = 0; part < 10; part++) {
      sent.write('part');
      await sleep(100);
    }
    sent.end();
    assert.equal(await answered, expected);
    server.close();
    server.closeAllConnections();
  });
}
