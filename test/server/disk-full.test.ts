// The disk of the data directory, the database and the log runs full, for real, and gets room again.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { openDatabase } from '#db/open.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { gatewayModel } from '#test/support/gateway.ts';
import { startHub } from '#test/support/hub.ts';
import { signIn } from '#test/support/installation.ts';
import { readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { mountSmallDisk, noSmallDisk } from '#test/support/small-disk.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement, readRows } from '#test/support/usage/usage.ts';

const mib = 2 ** 20;
const email = 'owner@example.com';

interface Answer {
  status: number;
  code: string | undefined;
  text: string;
}

/** A server whose data directory and log are on a disk of 80 MiB, 40 of which are reserved. */
async function startOnSmallDisk(context: TestContext) {
  const disk = mountSmallDisk(context, 80);
  const upstream = await startScriptedUpstream({});
  context.after(() => upstream.close());
  const hub = await startHub();
  hub.add('o/n', { 'm.gguf': randomBytes(1000) });
  const backend = { name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' };
  const file = join(disk.path, 'millrace.yaml');
  const reserve = { disk_reserve_gib: 40 / 1024 };
  const catalog = { [gatewayModel]: { backends: [backend] } };
  const cloud = { driver: 'scripted', rate_limit: false, ...reserve };
  const models = { hub_url: hub.url, catalog, ...reserve };
  writeFileSync(file, JSON.stringify({ cloud, models, log: { level: 'debug' } }));
  const dataDir = join(disk.path, 'data');
  mkdirSync(dataDir);
  const logFile = join(disk.path, 'log');
  const args = ['--config', file, '--data-dir', dataDir];
  const server = await serveMillrace(args, {}, openSync(logFile, 'a'));
  const key = readFirstSecret(server.stdout(), 'First API key');
  const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
  const cookie = await signIn(server.url, 'join', { token, email });

  async function call(path: string, json?: unknown): Promise<Answer> {
    const response = await fetch(server.url + path, {
      method: json === undefined ? 'GET' : 'POST',
      headers: {
        ...(path.startsWith('/dashboard') ? { cookie } : { authorization: `Bearer ${key}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: json === undefined ? null : JSON.stringify(json),
    });
    const text = await response.text();
    return { status: response.status, code: JSON.parse(text).error?.code, text };
  }

  const chat = async () => {
    const messages = [{ role: 'user', content: 'Go' }];
    return (await call('/v1/chat/completions', { model: gatewayModel, messages })).status;
  };
  const createKey = () => call('/dashboard/api/api-keys', { label: 'k' });
  const launch = () =>
    call('/api/v1/instance-operations/launch', {
      region_name: 'us-west-1',
      instance_type_name: 'cpu_1x_general',
      ssh_key_names: ['laptop'],
    });
  await call('/api/v1/ssh-keys', { name: 'laptop' });
  return { disk, server, dataDir, logFile, call, chat, createKey, launch };
}

describe('a full disk', { skip: noSmallDisk }, () => {
  test('launches and pulls stop at the reserve, everything else goes on, and a stop ends', async (context) => {
    const { disk, server, call, chat, createKey, launch } = await startOnSmallDisk(context);
    assert.equal((await launch()).status, 200);
    disk.fill(30 * mib);
    const launched = await launch();
    const full = 'instance-operations/launch/insufficient-capacity';
    assert.deepEqual([launched.status, launched.code], [507, full]);
    assert.match(launched.text, /disk .* almost full: \d+ MiB are free.*cloud\.disk_reserve_gib/);
    const types = await call('/api/v1/instance-types');
    assert(!types.text.includes('"us-west-1"'), 'the region still has capacity');
    const pulled = await call('/dashboard/api/weights/pulls', { repo: 'o/n' });
    assert.deepEqual([pulled.status, pulled.code], [507, 'hub_no_space']);
    assert.equal((await call('/readyz')).status, 200);
    assert.equal((await createKey()).status, 200);
    assert.equal(await chat(), 200);
    disk.empty();
    assert.equal((await launch()).status, 200);
    disk.fill(0);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });

  test('errors say so, reads and chats go on, and nothing is lost when there is room again', async (context) => {
    const { disk, server, dataDir, logFile, call, chat, createKey } =
      await startOnSmallDisk(context);
    assert.equal(await chat(), 200);
    disk.fill(0);
    const ready = await call('/readyz');
    assert.deepEqual([ready.status, ready.text], [503, '{"status":"disk full"}']);
    // The write-ahead log may have some room of its own.
    const refusalOf = (change: () => ReturnType<typeof call>) =>
      until('a change is refused', async () => {
        disk.fill(0);
        const answer = await change();
        return answer.status === 200 ? null : answer;
      });
    const refused = await refusalOf(createKey);
    assert.deepEqual([refused.status, refused.code], [507, 'disk_full']);
    assert.match(refused.text, /disk of the server is full/);
    let names = 0;
    const added = await refusalOf(() => call('/api/v1/ssh-keys', { name: `desktop-${names++}` }));
    assert.deepEqual([added.status, added.code], [507, 'provider/disk-full']);
    const attempt = { email, password: 'wrong horse' };
    const login = await until('a sign-in is refused for the disk', async () => {
      disk.fill(0);
      const answer = await call('/dashboard/api/login', attempt);
      return answer.code === 'disk_full' ? answer : null;
    });
    assert.equal(login.status, 507);
    for (const path of ['/dashboard/api/me', '/dashboard/api/api-keys', '/api/v1/instances']) {
      assert.equal((await call(path)).status, 200, path);
    }
    for (let count = 0; count < 50; count++) {
      const statuses = await Promise.all(Array.from({ length: 10 }, chat));
      assert.deepEqual(new Set(statuses), new Set([200]));
    }
    assert.equal(server.child.exitCode, null);

    disk.empty();
    assert.equal((await call('/readyz')).status, 200);
    assert.equal((await createKey()).status, 200);
    await signIn(server.url, 'login', { email });
    const db = await openDatabase({ url: null, poolSize: 1, dataDir });
    context.after(() => db.destroy());
    await until('all rows are written', async () => (await readRows(db)).length === 501);
    await assertAgreement(db);
    await until('the log goes on', () => {
      const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
      return lines.some(
        (line) => line.includes('/dashboard/api/login') && JSON.parse(line).status === 200,
      );
    });
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });
});
