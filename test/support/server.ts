// A real server on a free port, with its own data directory and database, for tests that go through HTTP.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { parse } from 'yaml';
import { withDefaults } from '#config/defaults.ts';
import { renderExample } from '#config/example.ts';
import { type Config, ConfigSchema } from '#config/schema.ts';
import type { Clock } from '#lib/clock.ts';
import { systemClock } from '#lib/clock.ts';
import { type RunningServer, startServer } from '#server/start.ts';
import { createLazyBuild } from './dashboard-build.ts';
import { createMigrated, type DatabaseKind, stopOwnPostgres } from './databases.ts';

export interface TestServer extends RunningServer {
  readonly key: string;
  readonly dataDir: string;
  readonly databaseUrl: string | null;
  fetch(path: string, init?: RequestInit & { json?: unknown }): Promise<Response>;
  /** Signs in by the set-up link and returns a fetch that sends the session's cookie. */
  join(email?: string): Promise<SessionFetch>;
  /** Signs in by an invitation's link. */
  joinBy(link: string, email: string): Promise<SessionFetch>;
  withCookie(cookie: string): SessionFetch;
}

export type SessionFetch = TestServer['fetch'] & { readonly cookie: string };

export interface TestOptions {
  database?: DatabaseKind;
  clock?: Clock;
  /** Any part of the configuration; the cloud's rate limit is off and its machines
   * are scripted unless given. */
  config?: DeepPartial<Config>;
  presetApiKey?: string;
  /** Start again on what an earlier server left. */
  on?: { dataDir: string; databaseUrl: string | null };
}

type DeepPartial<T> = T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T;

const example: unknown = parse(renderExample());
export const password = 'correct horse battery';
/** The least that argon2id takes. The standard cost takes 70 ms for each person that joins. */
const cheapest = { memory: 8, passes: 1, parallelism: 1 };
const sharedBuild = createLazyBuild();
const cleanups: (() => Promise<void>)[] = [];

after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  sharedBuild.end();
  await stopOwnPostgres();
});

export async function startTestServer(options: TestOptions = {}): Promise<TestServer> {
  const dataDir = options.on?.dataDir ?? (await makeFolder());
  const databaseUrl = options.on
    ? options.on.databaseUrl
    : await makeDatabase(dataDir, options.database);
  const config = merge(example, {
    data_dir: dataDir,
    server: { port: 0, drain_seconds: 1 },
    database: { url: databaseUrl },
    log: { level: 'silent' },
    cloud: { rate_limit: false, driver: 'scripted' },
  });
  const loaded = {
    config: withDefaults(ConfigSchema, merge(config, options.config ?? {})) as Config,
    file: null,
    presetApiKey: options.presetApiKey ?? null,
  };
  const server = await startServer(loaded, {
    clock: options.clock ?? systemClock,
    ownsDataDir: false,
    passwordCost: cheapest,
    dashboard: sharedBuild,
  });
  const key = options.presetApiKey ?? server.firstApiKey ?? '';
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= server.stop();
    return stopped;
  };
  cleanups.push(stop);

  const call = (path: string, { json, ...init }: RequestInit & { json?: unknown } = {}) =>
    fetch(`${server.url}${path}`, {
      ...init,
      method: init.method ?? (json === undefined ? 'GET' : 'POST'),
      headers: {
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(init.headers as Record<string, string>),
      },
      body: json === undefined ? (init.body ?? null) : JSON.stringify(json),
    });
  const withHeaders =
    (headers: Record<string, string>): TestServer['fetch'] =>
    (path, init = {}) =>
      call(path, { ...init, headers: { ...headers, ...(init.headers as Record<string, string>) } });

  const withCookie = (cookie: string): SessionFetch =>
    Object.assign(withHeaders({ cookie }), { cookie });
  const joinBy = async (link: string, email: string): Promise<SessionFetch> => {
    const token = link.split('/').at(-1);
    const response = await call('/dashboard/api/join', { json: { token, email, password } });
    assert.equal(response.status, 200);
    return withCookie(cookieOf(response));
  };

  return {
    ...server,
    stop,
    key,
    dataDir,
    databaseUrl,
    fetch: withHeaders({ authorization: `Bearer ${key}` }),
    withCookie,
    joinBy,
    async join(email = 'owner@example.com') {
      assert(server.setupLink !== null, 'the set-up link was used already');
      return joinBy(server.setupLink, email);
    },
  };
}

/** The session cookie of a login or join, as a request header. */
export function cookieOf(response: Response): string {
  const cookie = response.headers.getSetCookie()[0];
  assert(cookie !== undefined, 'no cookie was set');
  return cookie.split(';')[0] as string;
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-test-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function makeDatabase(
  dataDir: string,
  kind: DatabaseKind = 'sqlite',
): Promise<string | null> {
  const { url, drop } = await createMigrated(kind, dataDir);
  cleanups.push(drop);
  return url;
}

function merge(base: unknown, over: unknown): unknown {
  if (typeof base !== 'object' || base === null || typeof over !== 'object' || over === null) {
    return over === undefined ? base : over;
  }
  if (Array.isArray(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) merged[name] = merge(merged[name], value);
  return merged;
}
