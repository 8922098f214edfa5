// Deployments whose replicas are machines: real sandboxes, with real engines in them.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, before, describe, test } from 'node:test';
import type { InstanceStatsResult } from '#cloud/schema.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const enginePath = join(import.meta.dirname, '../support/deployed-engine.ts');
const engine = readFileSync(enginePath, 'utf8');
const model = 'hermes3-8b';
const type = 'cpu_1x_general';

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly ssh_key_names: readonly string[];
  readonly tags?: readonly { key: string; value: string }[];
}

describe('deployments on machines', { skip: needsSandbox() }, () => {
  let hub: TestHub;
  let server: TestServer;
  let owner: SessionFetch;
  const clock = createRunningClock();
  before(async () => {
    hub = await startHub();
    const models = { hub_url: hub.url, disk_reserve_gib: 0 };
    server = await startTestServer({
      clock,
      config: { cloud: { driver: 'sandbox' }, models },
    });
    owner = await server.join();
  });

  async function call<Data = DeploymentView>(method: string, path: string, json?: unknown) {
    const response = await owner(`/api/v1${path}`, {
      method,
      headers: { origin: server.url },
      ...(json === undefined ? {} : { json }),
    });
    const body = (await response.json()) as { data: Data; error?: { message: string } };
    return { status: response.status, ...body };
  }
  /** The test's engine, run by the Node that every sandbox has. */
  const create = (given: object = {}) =>
    call('POST', '/deployments', {
      name: 'tested',
      model,
      engine: 'command',
      program: '/run/machine/node',
      args: ['engine.ts'],
      setup: `cat >engine.ts <<'TEXT'\n${engine}\nTEXT\n`,
      runs_on: type,
      ...given,
    });
  const show = async () => (await call('GET', '/deployments/tested')).data;
  const readLog = async () =>
    (await call<{ lines: string[] }>('GET', '/deployments/tested/log')).data.lines.join('\n');
  const instances = async () => (await call<Listed[]>('GET', '/instances')).data;
  const chat = (given: object = {}) =>
    server.fetch('/v1/chat/completions', {
      json: { model, messages: [{ role: 'user', content: 'Hi' }], ...given },
    });
  afterEach(async () => {
    await call('DELETE', '/deployments/tested');
    await clock.until('all machines are gone', async () => (await instances()).length === 0);
  });

  const isReady = async () => (await show()).status === 'ready';

  test('a held request launches a machine, is answered by it, and an idle one is terminated', async () => {
    const { status, data } = await create({ env: { VERSION: 'inside' }, ladder: { gone: 1 } });
    assert.equal(status, 200);
    assert.deepEqual([data.status, data.runs_on], ['idle', type]);
    const responses = await clock.through(Promise.all([chat(), chat(), chat()]));
    for (const response of responses) {
      assert.equal(response.status, 200);
      assert.match(await response.text(), /inside 1 2/);
      assert(Number(response.headers.get('x-cold-start-ms')) > 0);
    }
    const [machine, ...others] = await instances();
    assert.deepEqual(others, []);
    assert.match(machine?.name ?? '', /^tested-[0-9a-f]{8}$/);
    assert.deepEqual(machine?.tags, [{ key: 'deployment', value: 'tested' }]);
    assert.equal((await show()).replicas[0]?.instance_id, machine?.id);
    await clock.until('its log is read', async () =>
      /loading version inside/.test(await readLog()),
    );
    await clock.until('it is idle again', async () => (await show()).status === 'idle');
    await clock.until('the machine is gone', async () => (await instances()).length === 0);
  });

  test('the built-in engine runs in a machine, stops when idle, and starts again in it', async () => {
    const engine = { engine: 'builtin', program: null, args: null, setup: null };
    await create({ ...engine, ladder: { stopped: 1 } });
    const response = await clock.through(chat({ max_tokens: 2 }));
    assert.equal(response.status, 200, await response.text());
    assert.match(response.headers.get('x-served-by') ?? '', /^tested-/);
    const before = await instances();
    await clock.until('it is stopped', async () => (await show()).replicas[0]?.state === 'stopped');
    assert.equal((await show()).status, 'asleep');
    const again = await clock.through(chat({ max_tokens: 2 }));
    assert.equal(again.status, 200, await again.text());
    assert.equal(again.headers.get('x-served-by'), response.headers.get('x-served-by'));
    assert.deepEqual(await instances(), before);
    assert.match(
      await readLog(),
      /millrace: the engine was stopped\nmillrace: starting the engine/,
    );
    assert.equal((await show()).reason, null);
  });

  test('what a replica uses is what its own machine uses', async () => {
    const small = { name: 'small', model: 'hermes3-70b', min: 1 };
    await create({ min: 1, env: { HOLD_MIB: '200' } });
    await create(small);
    await clock.until('both are ready', async () => {
      const { data } = await call<DeploymentView[]>('GET', '/deployments');
      return data.every(({ status }) => status === 'ready');
    });
    const read = async (name: string) => {
      const { data } = await call<ReplicaStats[]>('GET', `/deployments/${name}/stats`);
      const [{ memory_bytes: memory, memory_total_bytes: total, gpus } = assert.fail(name)] = data;
      assert.deepEqual(gpus, { value: [] });
      assert('value' in memory, JSON.stringify(memory));
      assert(memory.value > 0 && total !== null && memory.value < total, `${memory.value}`);
      return memory.value;
    };
    assert((await read('tested')) - (await read('small')) > 150 * 2 ** 20);
    const [replica] = (await show()).replicas;
    const response = await owner(`/dashboard/api/instances/${replica?.instance_id}/stats`);
    const { data } = (await response.json()) as InstanceStatsResult;
    const figure = data?.memory_bytes ?? assert.fail('the machine is not measured');
    assert('value' in figure && Math.abs(figure.value - (await read('tested'))) < 50 * 2 ** 20);
    await call('DELETE', '/deployments/small');
  });

  test('weights of the hub are fetched once, and machines see them read-only', async () => {
    const files = { 'config.json': '{"from":"hub"}', 'model.safetensors': 'weights' };
    hub.add(
      'acme/small',
      Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])),
    );
    await create({ source: 'acme/small', min: 2, max: 2 });
    await clock.until('both are ready', async () => {
      const { replicas } = await show();
      return replicas.length === 2 && replicas.every(({ state }) => state === 'ready');
    });
    const text = await (await clock.through(chat())).text();
    assert.match(text, /\{\\"from\\":\\"hub\\"\} in \/weights, read-only/);
    assert.equal(hub.seen.filter(({ host }) => host === 'cdn').length, 2);
  });

  test('a folder of the server is seen read-only, with what its links lead to', async () => {
    const folder = join(server.dataDir, 'own model');
    mkdirSync(folder);
    writeFileSync(join(server.dataDir, 'elsewhere'), '{"from":"folder"}');
    symlinkSync('../elsewhere', join(folder, 'config.json'));
    writeFileSync(join(folder, 'a note.txt'), 'A space in a name.');
    await create({ source: folder, min: 1 });
    assert.match(await (await clock.through(chat())).text(), /folder.* in \/weights, read-only/);
    // Only the server says what a machine sees.
    const launch = {
      region_name: 'us-east-1',
      instance_type_name: type,
      ssh_key_names: [],
      weights: '/etc',
    };
    const { status, error } = await call('POST', '/instance-operations/launch', launch);
    assert(status >= 400, error?.message ?? '');
    const refused = await create({ name: 'other', source: '/etc/shadow', model: 'hermes3-70b' });
    assert.equal(refused.status, 200);
    const secret = await server.fetch('/v1/chat/completions', {
      json: { model: 'hermes3-70b', messages: [{ role: 'user', content: 'Hi' }] },
    });
    assert.doesNotMatch(await secret.text(), /shadow/);
    const { data: other } = await call('GET', '/deployments/other');
    assert.match(other.reason ?? '', /Machines can't read \/etc\/shadow/);
    await call('DELETE', '/deployments/other');
  });

  test('a stream passes through the tunnel and ends before its machine', async () => {
    await create({ env: { TOKEN_MS: '50', TOKENS: '20' } });
    const response = await clock.through(chat({ stream: true }));
    const reader = response.body!.getReader();
    await reader.read();
    await clock.until('it runs', async () => (await show()).running === 1);
    await call('POST', '/deployments/tested/stop');
    let text = '';
    for (let part = await reader.read(); !part.done; part = await reader.read())
      text += Buffer.from(part.value).toString();
    assert.match(text, /"content":" 19"/);
    await clock.until('the machine is gone', async () => (await instances()).length === 0);
  });

  test('nobody can log in to the machine, or read its secrets', async () => {
    await create({ min: 1, env: { SECRET: 'hidden-value' } });
    await clock.until('it is ready', isReady);
    const [machine] = await instances();
    assert.deepEqual(machine?.ssh_key_names, []);
    const bootLog = await owner(`/dashboard/api/instances/${machine?.id}/boot-log`);
    assert.match(await bootLog.text(), /The log of the engine is on the page of its deployment/);
    const details = await owner('/dashboard/api/instances');
    const { data } = (await details.json()) as { data: { deployment: string | null }[] };
    assert.equal(data[0]?.deployment, 'tested');
    for (const file of readdirSync(server.dataDir).filter((name) => name.includes('.db')))
      assert(!readFileSync(join(server.dataDir, file), 'latin1').includes('hidden-value'), file);
  });

  test('a machine that a person terminates is replaced', async () => {
    await create({ min: 1 });
    await clock.until('it is ready', isReady);
    const [machine] = await instances();
    await call('POST', '/instance-operations/terminate', { instance_ids: [machine?.id] });
    await clock.until('another is ready', async () => {
      const [replica] = (await show()).replicas;
      return replica?.state === 'ready' && replica.instance_id !== machine?.id;
    });
    assert.equal((await show()).reason, null);
    assert.equal((await clock.through(chat())).status, 200);
  });

  test('an engine that dies is replaced with its machine', async () => {
    await create({ min: 1, env: { EXIT_AFTER_MS: '500' } });
    await clock.until('its end is noticed', async () =>
      /exit code 3/.test((await show()).reason ?? ''),
    );
  });

  test('after three failed starts the reason is said and no machine is left', async () => {
    await create({ env: { FAIL: 'torch.OutOfMemoryError: CUDA out of memory' } });
    const response = await clock.through(chat());
    assert.equal(response.status, 503);
    assert.match(
      await response.text(),
      /The deployment tested failed\. There is too little memory/,
    );
    assert.deepEqual((await show()).replicas, []);
    assert.deepEqual(await instances(), []);
    assert.match(await readLog(), /CUDA out of memory/);
  });

  test('a set-up script that fails is a reason, and so is a type without capacity', async () => {
    await create({ setup: 'echo missing; exit 7' });
    assert.match(
      await (await clock.through(chat())).text(),
      /The set-up script ended with exit code 7/,
    );
    await call('POST', '/deployments/tested', { program: '/no/such/program', setup: null });
    assert.match(await (await clock.through(chat())).text(), /The machine has no such program/);
    await call('POST', '/deployments/tested', { runs_on: 'gpu_8x_h100_sxm5' });
    assert.equal((await clock.through(chat())).status, 503);
    assert.match(
      (await show()).reason ?? '',
      /No host that this server reaches offers gpu_8x_h100_sxm5\.$/,
    );
    assert.deepEqual(await instances(), []);
  });

  test('while all machines are in use it waits for one, and a client that leaves ends that', async () => {
    const types = await call<Record<string, unknown>>('GET', '/instance-types');
    const largest = Object.keys(types.data).findLast((name) => /^cpu_\d+x_general$/.test(name));
    await create({ name: 'large', model: 'hermes3-70b', runs_on: largest, min: 1 });
    await clock.until('it has a machine', async () => (await instances()).length === 1);
    await create();
    const isWaiting = async () =>
      (await show()).replicas[0]?.progress === `waiting for a free ${type}`;
    const leaving = new AbortController();
    const json = { model, messages: [{ role: 'user', content: 'Hi' }] };
    const left = server.fetch('/v1/chat/completions', { json, signal: leaving.signal });
    await clock.until('it waits', isWaiting);
    leaving.abort();
    await left.catch(() => {});
    await clock.until('nothing waits', async () => (await show()).replicas.length === 0);
    const answer = chat();
    await clock.until('it waits', isWaiting);
    assert.equal((await show()).status, 'starting');
    await call('DELETE', '/deployments/large');
    assert.equal((await clock.through(answer)).status, 200);
    assert.equal((await show()).reason, null);
  });

  test('an update moves from machines to the host and back without a pause', async () => {
    await create({ min: 1 });
    await clock.until('it is ready', isReady);
    const onHost = { runs_on: 'host', setup: null, program: process.execPath, args: [enginePath] };
    await call('POST', '/deployments/tested', onHost);
    await clock.until('a process has taken over', async () => {
      const { replicas } = await show();
      return replicas.length === 1 && replicas[0]?.instance_id === null;
    });
    assert.equal((await clock.through(chat())).status, 200);
    await call('POST', '/deployments/tested/rollback');
    await clock.until('a machine has taken over', async () => {
      const { replicas } = await show();
      return replicas.length === 1 && replicas[0]?.instance_id !== null;
    });
  });

  test('what contradicts itself is refused', async () => {
    const refusals: [object, RegExp][] = [
      [{ runs_on: 'no_such_type' }, /no instance type "no_such_type"/],
      [{ runs_on: 'host' }, /setup is for machines/],
    ];
    for (const [given, message] of refusals) {
      const { status, error } = await create(given);
      assert(status >= 400 && status < 500);
      assert.match(error?.message ?? '', message);
    }
  });

  test('a server that stops leaves the machine, and the next one adopts it', async () => {
    await create({ min: 1 });
    await clock.until('it is ready', isReady);
    const before = await instances();
    await server.stop();
    const { dataDir, databaseUrl, key } = server;
    const config = { cloud: { driver: 'sandbox' as const } };
    server = await startTestServer({
      clock,
      config,
      on: { dataDir, databaseUrl },
      presetApiKey: key,
    });
    owner = server.withCookie(owner.cookie);
    await clock.until('it is ready', isReady);
    assert.equal((await clock.through(chat())).status, 200);
    assert.deepEqual(
      (await instances()).map(({ id }) => id),
      before.map(({ id }) => id),
    );
  });
});
