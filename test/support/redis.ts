// A real Redis for tests: the system's redis-server or valkey-server on a free port, without persistence. Suites
// that need it are skipped if neither is installed.

import assert from 'node:assert';
import { type ChildProcess, spawn } from 'node:child_process';
import { Redis } from 'ioredis';
import type { Clock } from '#lib/clock.ts';
import { openRedis, type SharedRedis } from '#lib/limits/redis.ts';
import { findFreePort } from './free-port.ts';
import { skipFor, use } from './programs.ts';
import { until } from './until.ts';

export interface TestRedis {
  readonly url: string;
  /** Opens a client, for tests that read or change keys. */
  connect(): Promise<Redis>;
  /** Connects as the server does. Any failure fails the test. */
  share(clock: Clock): Promise<SharedRedis>;
  /** Stops the process: it accepts connections and never responds. */
  freeze(): void;
  /** Continues the process, which then works through what it was sent meanwhile. */
  thaw(): void;
  stop(): Promise<void>;
}

const [redisProgram] = use('redis-server', 'valkey-server');

/** Why Redis suites are skipped, or false. */
export const redisIsMissing =
  redisProgram === undefined && skipFor('redis-server and valkey-server are missing');

export async function startRedis(): Promise<TestRedis> {
  const port = await findFreePort();
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
    await untilReady(client, child);
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

async function untilReady(client: Redis, child: ChildProcess): Promise<void> {
  // Connecting fails until the server listens.
  client.on('error', () => {});
  await until('Redis is ready', () => {
    if (child.exitCode !== null) throw new Error(`Redis exited with ${child.exitCode}`);
    return client.status === 'ready';
  });
}
