// A real Redis for tests: the system's redis-server or valkey-server on a free port, which keeps nothing.
// Null where neither is installed.

import assert from 'node:assert';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Clock } from '#lib/clock.ts';
import { openRedis, type SharedRedis } from '#lib/limits/redis.ts';

export interface TestRedis {
  readonly url: string;
  /** To look inside. */
  connect(): Promise<Redis>;
  /** As the server connects; any failure fails the test. */
  share(clock: Clock): Promise<SharedRedis>;
  /** It takes connections and answers nothing. */
  freeze(): void;
  /** It goes on with what it was sent meanwhile. */
  thaw(): void;
  stop(): Promise<void>;
}

export const redisProgram = ['redis-server', 'valkey-server'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

/** For `skip`: false when there is one, else why not. */
export const redisIsMissing =
  redisProgram === undefined && 'neither redis-server nor valkey-server is installed';

export async function startRedis(): Promise<TestRedis> {
  const port = await freePort();
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const child = spawn(redisProgram ?? 'redis-server', settings, { stdio: 'ignore', cwd: '/tmp' });
  const clients: Redis[] = [];
  const connect = async () => {
    const client = new Redis(port, '127.0.0.1');
    clients.push(client);
    await answers(client, child);
    return client;
  };
  await connect();
  const url = `redis://127.0.0.1:${port}`;
  return {
    url,
    connect,
    async share(clock) {
      const shared = await openRedis(url, clock, (error) => assert.fail(error as Error));
      clients.push(shared.redis);
      return shared;
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async stop() {
      for (const client of clients) client.disconnect();
      const gone = new Promise((done) => child.once('exit', done));
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await gone;
    },
  };
}

async function answers(client: Redis, child: ChildProcess): Promise<void> {
  // It is not there yet; that is no news.
  client.on('error', () => {});
  const deadline = Date.now() + 15_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`redis exited with ${child.exitCode}`);
    if (client.status === 'ready') return;
    await sleep(10);
  }
  throw new Error('redis did not start within 15 s');
}

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer();
    server.once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}
