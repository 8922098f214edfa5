// Machines of deployments outlive a server that is killed. The next one adopts them, or terminates them if no deployment
// wants them. Real sandboxes, and the real program.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { openExistingDatabase } from '#db/open.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { type RunningProcess, readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { cookieOf, password } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'hermes3-8b';
const key = 'secret_test_00000000000000000000000000000000.abcdefghijklmnopqrstuvwxyz012345';
const engine = readFileSync(join(import.meta.dirname, '../support/deployed-engine.ts'), 'utf8');

describe('machines of a server that is killed', { skip: needsSandbox() }, () => {
  let server: RunningProcess;
  let cookie = '';
  let dataDir = '';
  before(async () => {
    server = await serveMillrace([], { MILLRACE_API_KEY: key });
    ({ dataDir } = server);
    const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
    const person = { token, email: 'me@example.com', password };
    cookie = cookieOf(await send('POST', '/dashboard/api/join', person));
  });
  after(async () => {
    await kill();
    const driver = await createSandboxDriver({ dataDir });
    for (const id of await driver.list()) await driver.terminate(id);
    await driver.close();
  });

  const send = (method: string, path: string, json?: unknown) =>
    fetch(`${server.url}${path}`, {
      method,
      headers: { cookie, origin: server.url, 'content-type': 'application/json' },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
  const create = (given: object) =>
    send('POST', '/api/v1/deployments', {
      name: 'tested',
      model,
      engine: 'command',
      program: '/run/machine/node',
      args: ['engine.ts'],
      setup: `cat >engine.ts <<'TEXT'\n${engine}\nTEXT\n`,
      runs_on: 'cpu_1x_general',
      ...given,
    });
  async function show(): Promise<DeploymentView> {
    const response = await send('GET', '/api/v1/deployments/tested');
    return ((await response.json()) as { data: DeploymentView }).data;
  }
  const chat = () =>
    fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    });
  async function readLog(): Promise<string> {
    const response = await send('GET', '/api/v1/deployments/tested/log');
    return ((await response.json()) as { data: { lines: string[] } }).data.lines.join('\n');
  }
  const machines = () => readdirSync(join(dataDir, 'machines'));
  const isReady = async () => (await show()).status === 'ready';
  async function kill() {
    server.child.kill('SIGKILL');
    await server.ended;
  }
  async function restart() {
    server = await serveMillrace(['--data-dir', dataDir], { MILLRACE_API_KEY: key });
  }

  test('a ready replica is adopted, and answers without a launch', async () => {
    await create({ min: 1, env: { VERSION: `started ${Date.now()}` } });
    await until('it is ready', isReady);
    const [before] = (await show()).replicas;
    await kill();
    await restart();
    const response = await chat();
    assert.equal(response.status, 200);
    assert.match(response.headers.get('x-served-by') ?? '', /^tested-/);
    assert.deepEqual(
      (await show()).replicas.map(({ id }) => id),
      [before?.instance_id],
    );
    assert.deepEqual(machines(), [before?.instance_id]);
  });

  test('a replica whose engine is stopped is adopted as such, and starts for a request', async () => {
    const [before] = machines();
    await send('POST', '/api/v1/deployments/tested', { min: 0, ladder: { stopped: 1 } });
    await until('it is stopped', async () => (await show()).replicas[0]?.state === 'stopped');
    await kill();
    await restart();
    assert.equal((await show()).status, 'asleep');
    const response = await chat();
    assert.equal(response.status, 200, await response.text());
    assert.deepEqual(machines(), [before]);
    await send('POST', '/api/v1/deployments/tested', { ladder: null });
  });

  test('an engine that was to fall asleep when the server was killed does so afterwards', async () => {
    await send('DELETE', '/api/v1/deployments/tested');
    await until('its machine is gone', () => machines().length === 0);
    const vllm = 'exec /run/machine/node engine.ts "$@"';
    await create({
      ...{ engine: 'vllm', program: './vllm', args: [], source: '/nowhere' },
      setup: `cat >engine.ts <<'TEXT'\n${engine}\nTEXT\nprintf '#!/bin/sh\\n${vllm}\\n' >vllm; chmod 700 vllm`,
      ladder: { asleep: 600, gone: 3_600 },
    });
    assert.equal((await chat()).status, 200);
    await kill();
    const db = await openExistingDatabase({ url: null, poolSize: 1, dataDir });
    const resting = { resting: 'asleep', idle_since: Date.now() } as const;
    await db.updateTable('replicas').set(resting).execute();
    await db.destroy();
    await restart();
    assert.equal((await show()).status, 'asleep');
    await until('it sleeps', async () => /^fell asleep$/m.test(await readLog()));
    const response = await chat();
    assert.equal(response.status, 200, await response.text());
    assert.equal((await show()).reason, null);
  });

  test('a machine whose deployment was removed is terminated by the next server', async () => {
    const [known] = machines();
    await send('DELETE', '/api/v1/deployments/tested');
    await kill();
    await restart();
    await until(`${known} is gone`, () => machines().length === 0);
  });

  for (const [when, isThere] of [
    ['after the launch was written', async () => (await show()).replicas.length > 0],
    ['once the machine exists', () => machines().length > 0],
    ['while the engine loads', async () => /starting the engine/.test(await progress())],
  ] as const) {
    test(`a replica that starts is launched once, though the server is killed ${when}`, async () => {
      await create({ env: { LOAD_MS: '1000' } });
      chat().catch(() => {});
      await until(when, isThere);
      await kill();
      await restart();
      const response = await chat();
      assert.equal(response.status, 200, await response.text());
      const { replicas } = await show();
      assert.equal(replicas.length, 1);
      assert.deepEqual(machines(), [replicas[0]?.instance_id]);
      await send('DELETE', '/api/v1/deployments/tested');
      await until('the machine is gone', () => machines().length === 0);
    });
  }
  const progress = async () => (await show()).replicas[0]?.progress ?? '';
});
