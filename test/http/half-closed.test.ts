// Clients that close their side of the connection once their request is sent, and those that have left.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { type Gateway, gatewayModel, startGateway } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

/** The client closes its side unless it is to stay open. */
function send({ server }: Gateway, body: object, { version = '1.1', stays = false } = {}): Socket {
  const messages = [{ role: 'user', content: 'Go' }];
  const text = JSON.stringify({ model: gatewayModel, messages, ...body });
  const { hostname, port, host } = new URL(server.url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.on('error', () => {});
  socket.write(
    `POST /v1/chat/completions HTTP/${version}\r\nhost: ${host}\r\nauthorization: Bearer ${server.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  );
  if (!stays) socket.end();
  return socket;
}

const read = async (socket: Socket) => (await socket.toArray()).join('');
const isIdle = ({ upstreams }: Gateway) =>
  upstreams[0]?.requests.every(({ state }) => state !== 'running') ?? false;

describe('a client that closes its side of the connection after the request', () => {
  test('gets its response, whole or as a stream', async (t) => {
    const gateway = await startGateway(t, { upstreams: [{ delayMs: 300 }] });
    assert.match(await read(send(gateway, {})), /HTTP\/1\.1 200 OK\r\n.*"finish_reason":"stop"/s);
    assert.match(await read(send(gateway, { stream: true })), /\[DONE\]/);
  });

  test('frees the backend if it has left', async (t) => {
    const gateway = await startGateway(t, { upstreams: [{ behaviour: 'never-ends' }] });
    const cases: [body: object, how: object][] = [
      [{}, {}],
      [{ stream: true }, {}],
      [{}, { stays: true }],
      [{}, { stays: true, version: '1.0' }],
    ];
    for (const [body, how] of cases) {
      const socket = send(gateway, body, how);
      await until('it runs', () => !isIdle(gateway));
      socket.destroy();
      await until('it has ended', () => isIdle(gateway));
    }
  });
});
