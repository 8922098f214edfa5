// Connections take at most half of the files that the process may open, and one client a bounded part of them.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { limitConnections } from '#http/connection-limit.ts';
import { skipFor } from '#test/support/programs.ts';

test('half of the files are left to the server itself', {
  skip: process.platform === 'linux' ? false : 'only Linux tells the limit',
}, () => {
  const module = join(import.meta.dirname, '../../src/http/connection-limit.ts');
  const program = `
    import { createServer } from 'node:http';
    import { limitConnections } from '${module}';
    const server = createServer();
    limitConnections(server, 1000);
    console.log(server.maxConnections);`;
  const command = 'ulimit -n 400 && exec "$0" --input-type=module -e "$1"';
  const shown = execFileSync('sh', ['-c', command, process.execPath, program], {
    encoding: 'utf8',
    cwd: join(import.meta.dirname, '../..'),
  });
  assert.equal(shown.trim(), '200');
});

/** An address of this computer at which it is not known as itself. */
const outer = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

async function serve(t: TestContext, maxPerClient: number | null) {
  const server = createServer((_, response) => response.end('ok'));
  limitConnections(server, maxPerClient);
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  /** Resolves with true if the server keeps the connection and answers on it. */
  return async function open(host: string): Promise<{ isKept: boolean; socket: Socket }> {
    const socket = connect(port, host);
    socket.on('error', () => {});
    t.after(() => socket.destroy());
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const isKept = await Promise.race([
      once(socket, 'data').then(() => true),
      once(socket, 'close').then(() => false),
    ]);
    return { isKept, socket };
  };
}

test('a client over its number of connections is refused others until one ends', {
  skip: outer === undefined && skipFor('this computer has no address but its own'),
}, async (t) => {
  const open = await serve(t, 3);
  const kept = [await open(outer ?? ''), await open(outer ?? ''), await open(outer ?? '')];
  assert(kept.every(({ isKept }) => isKept));
  assert.equal((await open(outer ?? '')).isKept, false);
  assert.equal((await open('127.0.0.1')).isKept, true, 'another client is not affected');
  kept[0]?.socket.destroy();
  for (let isFree = false; !isFree; ) isFree = (await open(outer ?? '')).isKept;
});

test('a proxy on this computer, and proxies that are trusted, have as many as they need', async (t) => {
  const open = await serve(t, 2);
  for (let at = 0; at < 10; at++) assert((await open('127.0.0.1')).isKept);
  const openAll = await serve(t, null);
  for (let at = 0; at < 10; at++) assert((await openAll(outer ?? '127.0.0.1')).isKept);
});
