// Websockets that are refused, and clients of a terminal that do not read, or claim that they did.

import assert from 'node:assert';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import Fastify from 'fastify';
import type { Authenticator } from '#accounts/authenticate.ts';
import { type TerminalParts, terminalRoutes } from '#cloud/api/terminal.ts';
import type { Terminal } from '#cloud/drivers/driver.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const id = 'f'.repeat(32);

function upgrade(port: string, path: string, { method = 'GET', host = '127.0.0.1' } = {}): Socket {
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(
    `${method} ${path}?columns=80&rows=24 HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: Upgrade\r\n` +
      'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  return socket;
}

describe('terminals under attack', () => {
  test('an upgrade that is refused does not keep its connection', async () => {
    const { url } = await startTestServer();
    const { port } = new URL(url);
    const path = (instance: string) => `/dashboard/api/instances/${instance}/terminal`;
    const refused = [
      upgrade(port, path(id)),
      upgrade(port, path(id), { host: 'other.example' }),
      upgrade(port, path(id), { method: 'PUT' }),
      upgrade(port, path('%zz')),
      upgrade(port, path('f'.repeat(5_000))),
    ];
    for (const socket of refused) {
      // Closes: otherwise the test would time out.
      await once(socket.resume(), 'close');
    }
  });

  test('pings of a client that does not read are not answered', async (t) => {
    const app = Fastify();
    t.after(() => app.close());
    await app.register(async (scope) => terminalRoutes(scope, toParts(silentShell)));
    await app.listen();
    const { port } = app.server.address() as AddressInfo;
    const socket = upgrade(`${port}`, `/instances/${id}/terminal`);
    await once(socket, 'data');
    socket.pause();
    // A masked ping of 125 bytes.
    const ping = Buffer.alloc(131).fill(0x89, 0, 1).fill(0xfd, 1, 2);
    const pings = Buffer.concat(Array.from({ length: 8_000 }, () => ping));
    const sentBytes = 30 * pings.length;
    for (let sent = 0; sent < sentBytes; sent += pings.length)
      if (!socket.write(pings)) await once(socket, 'drain');
    let answeredBytes = 0;
    socket.on('data', ({ length }) => {
      answeredBytes += length;
    });
    // A masked close. The server confirms it after everything that waits to be sent.
    socket.resume().end(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
    await once(socket, 'close');
    assert(answeredBytes < sentBytes / 2, `${answeredBytes} of ${sentBytes}`);
  });

  test('output waits for a client that only claims to have displayed it', async (t) => {
    const shell = new EndlessShell();
    const app = Fastify();
    t.after(() => app.close());
    await app.register(async (scope) => terminalRoutes(scope, toParts(shell)));
    await app.listen();
    const { port } = app.server.address() as AddressInfo;
    const socket = upgrade(`${port}`, `/instances/${id}/terminal`);
    t.after(() => socket.destroy());
    await once(socket, 'data');
    socket.pause();
    const claim = toFrame(0x81, '{"shown":1000000000}');
    for (let sent = 0; sent < 300; sent++) socket.write(claim);
    socket.write(toFrame(0x82, 'x'));
    await until('all claims were read', () => shell.typedBytes === 1);
    // The kernel's buffers hold a few megabytes. 300 claims would release 150 MiB.
    assert(shell.printedBytes < 32 * 1024 * 1024, `${shell.printedBytes} bytes were printed`);
    const printedBytes = shell.printedBytes;
    socket.resume();
    await until('the output goes on', () => shell.printedBytes > printedBytes);
  });

  test('a flood of messages leaves turns of the event loop to others', async (t) => {
    let turn = 0;
    const seen: number[] = [];
    const app = Fastify();
    t.after(() => app.close());
    const shell = { ...silentShell, resize: () => void seen.push(turn) };
    await app.register(async (scope) => terminalRoutes(scope, toParts(shell)));
    await app.listen();
    const { port } = app.server.address() as AddressInfo;
    const socket = upgrade(`${port}`, `/instances/${id}/terminal`);
    t.after(() => socket.destroy());
    await once(socket, 'data');
    const resize = toFrame(0x81, '{"columns":80,"rows":24}');
    socket.write(Buffer.concat(Array.from({ length: 100 }, () => resize)));
    for (; seen.length < 100; turn++) await setImmediate();
    assert.equal(new Set(seen).size, 100);
  });
});

/** A masked frame. The mask is zero. */
const toFrame = (kind: number, text: string) =>
  Buffer.concat([Buffer.from([kind, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);

/** Prints until it is paused. */
class EndlessShell implements Terminal {
  printedBytes = 0;
  typedBytes = 0;
  #isPaused = false;
  #listener: (data: Buffer) => void = () => {};

  onData(listener: (data: Buffer) => void): void {
    this.#listener = listener;
    process.nextTick(() => this.resume());
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused) {
      this.printedBytes += 65_536;
      this.#listener(Buffer.alloc(65_536));
    }
  }

  pause(): void {
    this.#isPaused = true;
  }

  write(data: Buffer): boolean {
    this.typedBytes += data.length;
    return true;
  }

  resize(): void {}
  kill(): void {
    this.#isPaused = true;
  }
  onDrain(): void {}
  onExit(): void {}
}

const session = {
  kind: 'session' as const,
  sessionId: 'session',
  userId: 'user',
  accountId: 'account',
  email: 'owner@example.com',
  role: 'owner' as const,
  address: '127.0.0.1',
};

/** A shell that prints nothing. */
const silentShell: Terminal = {
  write: () => true,
  resize() {},
  pause() {},
  resume() {},
  kill() {},
  onData() {},
  onDrain() {},
  onExit() {},
};

const toParts = (shell: Terminal): TerminalParts => ({
  authenticator: {
    requireSession: (app) => {
      app.decorateRequest('principal', { getter: () => session });
    },
    findSession: async () => session,
  } as Pick<Authenticator, 'requireSession' | 'findSession'> as Authenticator,
  cloud: {
    instances: { get: async () => ({}) },
    events: { subscribe: () => () => {} },
    details: { openTerminal: async () => shell },
  } as unknown as TerminalParts['cloud'],
});
