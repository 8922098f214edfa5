// Deployments of several servers on one database: another server takes over those on machines when theirs is lost. Scripted
// machines answer with their id.

import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { DeploymentView } from '#deployments/schema.ts';
import { type Clock, systemClock } from '#lib/clock.ts';
import { databases } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'hermes3-8b';
const config = { secret_key: Buffer.alloc(32, 7).toString('base64') };

interface Server {
  readonly server: TestServer;
  readonly owner: SessionFetch;
}

const startFirst = async (): Promise<Server> => {
  const server = await startTestServer({ database: 'postgres', config });
  return { server, owner: await server.join() };
};

/** Another server on the same database, with a host of its own. */
async function startAnother(first: Server, clock: Clock = systemClock): Promise<Server> {
  const { databaseUrl, key } = first.server;
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-server-'));
  const on = { dataDir, databaseUrl };
  const server = await startTestServer({ on, config, clock, presetApiKey: key });
  return { server, owner: server.withCookie(first.owner.cookie) };
}

async function call<Data = DeploymentView>(
  { server, owner }: Server,
  method: string,
  path: string,
  json?: unknown,
): Promise<Data> {
  const response = await owner(`/api/v1${path}`, {
    method,
    headers: { origin: server.url },
    ...(json === undefined ? {} : { json }),
  });
  return ((await response.json()) as { data: Data }).data;
}

const deploy = (server: Server, runsOn: string) =>
  call(server, 'POST', '/deployments', {
    ...{ name: 'tested', model, engine: 'command', program: 'engine', runs_on: runsOn },
  });
const show = (server: Server) => call(server, 'GET', '/deployments/tested');
const instances = (server: Server) =>
  call<{ id: string; status: string }[]>(server, 'GET', '/instances');
const chat = ({ server }: Server) =>
  server.fetch('/v1/chat/completions', {
    json: { model, messages: [{ role: 'user', content: 'Hi' }] },
  });

describe('deployments of several servers', {
  skip: !databases.includes('postgres') && 'there is no PostgreSQL',
}, () => {
  test('another server runs the deployment of one that was stopped', async () => {
    const first = await startFirst();
    await deploy(first, 'cpu_1x_general');
    assert.equal((await chat(first)).status, 200);
    const second = await startAnother(first);
    await first.server.stop();
    await until('it is taken over', async () => {
      const response = await chat(second);
      await response.arrayBuffer();
      return /^tested-/.test(response.headers.get('x-served-by') ?? '');
    });
    const { status, replicas } = await show(second);
    assert.deepEqual([status, replicas.length], ['ready', 1]);
  });

  test('a server that only seemed lost leaves the deployment to the other', async () => {
    const first = await startFirst();
    await deploy(first, 'cpu_1x_general');
    assert.equal((await chat(first)).status, 200);
    const [machine] = await instances(first);
    // To this server, the signs of life of the first are a minute old.
    const second = await startAnother(first, { now: () => Date.now() + 60_000 });
    await until(
      'the first server has left it',
      async () => (await show(first)).replicas.length === 0,
    );
    assert.match((await chat(second)).headers.get('x-served-by') ?? '', /^tested-/);
    await until('one machine is left', async () => {
      const left = await instances(second);
      return left.length === 1 && left[0]?.id !== machine?.id;
    });
    await call(second, 'DELETE', '/deployments/tested');
    await until('no machine is left', async () => (await instances(second)).length === 0);
  });

  test('engines beside a server stay with it', async () => {
    const first = await startFirst();
    await deploy(first, 'host');
    const second = await startAnother(first, { now: () => Date.now() + 60_000 });
    // The other server has looked by then.
    await call(second, 'POST', '/deployments', {
      ...{ name: 'other', model: 'llama3-8b', engine: 'command', program: 'engine' },
    });
    assert.equal((await chat(second)).headers.get('x-served-by'), 'builtin');
    assert.equal((await chat(first)).status, 503);
  });
});
