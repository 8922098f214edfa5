// A deployment on machines of a real LXD host. The small image has no Node, so the engine is a shell script.

import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import { noPostgres } from '#test/support/databases.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { makeToken, noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'hermes3-8b';
const answer = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'from LXD' }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
});

/** Writes a program that answers one HTTP request on its standard input. */
const setup = `cat >reply <<'TEXT'
#!/bin/sh
while read -r line; do
  line=$(printf %s "$line" | tr -d '\\r')
  case "$line" in
    '') break ;;
    [Cc]ontent-[Ll]ength:*) length=\${line#*: } ;;
  esac
done
[ -z "$length" ] || head -c "$length" >/dev/null
printf 'HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: ${answer.length}\\r\\nconnection: close\\r\\n\\r\\n'
printf %s '${answer}'
TEXT
chmod 755 reply`;

const secret_key = Buffer.alloc(32, 7).toString('base64');
const skip = noLxd || noPostgres;

describe('deployments on machines of LXD', { skip, timeout: 240_000 }, () => {
  let lxd: Lxd;
  let hub: TestHub;
  let server: TestServer;
  let owner: SessionFetch;
  /** Where the certificate is that the host trusts. */
  let certificateFolder: string;
  before(async () => {
    lxd = await startSmallLxd();
    hub = await startHub();
    const models = { hub_url: hub.url, disk_reserve_gib: 0 };
    const cloud = { driver: 'none' as const };
    const config = { cloud, models, secret_key };
    server = await startTestServer({ database: 'postgres', config });
    certificateFolder = server.dataDir;
    owner = await server.join();
    const token = await makeToken(lxd);
    const host = { name: 'lxd', region: 'us-east-1', token, network: lxd.network };
    assert.equal((await owner('/dashboard/api/hosts', { json: host })).status, 200);
  });
  after(async () => {
    await server?.stop();
    await lxd?.stop();
  });

  async function call<Data = DeploymentView>(method: string, path: string, json?: unknown) {
    const response = await owner(`/api/v1${path}`, {
      method,
      headers: { origin: server.url },
      ...(json === undefined ? {} : { json }),
    });
    return ((await response.json()) as { data: Data }).data;
  }
  const machines = () => call<{ id: string }[]>('GET', '/instances');
  const chat = async () => {
    const response = await server.fetch('/v1/chat/completions', {
      json: { model, messages: [{ role: 'user', content: 'Hi' }] },
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text;
  };

  test('weights of the hub come to the host once, by a volume that goes with the deployment', async () => {
    hub.add('acme/small', {
      'config.json': Buffer.from('from the hub'),
      'model.safetensors': Buffer.from('weights'),
    });
    const check = '[ "$(cat "$WEIGHTS/config.json")" = "from the hub" ] || exit 7\n';
    const engine = { engine: 'command', program: 'busybox', setup: check + setup };
    const args = ['nc', '-ll', '-p', '8000', '-e', './reply'];
    const place = { runs_on: 'cpu_1x_general', min: 2, max: 2, source: 'acme/small' };
    await call('POST', '/deployments', { name: 'weighed', model, ...engine, args, ...place });
    await until('both answer', async () => {
      const { replicas, reason } = await call('GET', '/deployments/weighed');
      assert.equal(reason, null);
      return replicas.length === 2 && replicas.every(({ state }) => state === 'ready');
    });
    assert.match(await chat(), /from LXD/);
    const stats = await call<ReplicaStats[]>('GET', '/deployments/weighed/stats');
    assert.equal(stats.length, 2);
    for (const { memory_bytes: memory, memory_total_bytes: total, gpus } of stats) {
      assert('value' in memory && total !== null, JSON.stringify(memory));
      assert(memory.value > 0 && memory.value < total);
      assert.deepEqual(gpus, { value: [] });
    }
    const volumes = () =>
      lxd.request<string[]>('GET', `/1.0/storage-pools/${lxd.pool}/volumes/custom`);
    assert.equal((await volumes()).length, 1);
    assert.equal(hub.seen.filter(({ host }) => host === 'cdn').length, 2);
    await call('DELETE', '/deployments/weighed');
    await until('the volume is gone', async () => (await volumes()).length === 0);
  });

  test('a held request launches a container, and its engine answers through the daemon', async () => {
    const engine = { engine: 'command', program: 'busybox', setup, runs_on: 'cpu_1x_general' };
    const args = ['nc', '-ll', '-p', '8000', '-e', './reply'];
    await call('POST', '/deployments', { name: 'tested', model, ...engine, args });
    assert.match(await chat(), /from LXD/);
    const answers = await Promise.all([chat(), chat(), chat(), chat()]);
    for (const text of answers) assert.match(text, /from LXD/);
    assert.equal((await machines()).length, 1);
  });

  async function startNext(dataDir: string): Promise<void> {
    const { databaseUrl, key: presetApiKey } = server;
    await server.stop();
    const cloud = {
      driver: 'none' as const,
      client_certificate: join(certificateFolder, 'incus-client.crt'),
      client_key: join(certificateFolder, 'incus-client.key'),
    };
    const config = { cloud, secret_key };
    server = await startTestServer({ config, on: { dataDir, databaseUrl }, presetApiKey });
    owner = server.withCookie(owner.cookie);
  }

  test('the next server adopts the container', async () => {
    const before = await machines();
    await startNext(server.dataDir);
    assert.match(await chat(), /from LXD/);
    assert.deepEqual(await machines(), before);
  });

  test('another server takes over the container, and the first may do so again', async () => {
    const before = await machines();
    const first = server.dataDir;
    for (const dataDir of [mkdtempSync(join(tmpdir(), 'millrace-server-')), first]) {
      await startNext(dataDir);
      await until('it is taken over', async () => /from LXD/.test(await chat()));
      assert.deepEqual(await machines(), before);
    }
  });

  test('an idle engine ends while its container stays, and starts again for a request', async () => {
    const before = (await machines()).map(({ id }) => id);
    await call('POST', '/deployments/tested', { ladder: { stopped: 1 } });
    await until('it is stopped', async () => {
      const { replicas } = await call('GET', '/deployments/tested');
      return replicas[0]?.state === 'stopped';
    });
    assert.match(await chat(), /from LXD/);
    assert.deepEqual(
      (await machines()).map(({ id }) => id),
      before,
    );
    await call('POST', '/deployments/tested', { ladder: null });
  });

  test('an engine that ends is a reason, and removal terminates the container', async () => {
    await call('POST', '/deployments/tested', { setup: 'exit 9', min: 1 });
    await until('the reason is said', async () => {
      const { reason } = await call('GET', '/deployments/tested');
      return /set-up script ended with exit code 9/.test(reason ?? '');
    });
    await call('DELETE', '/deployments/tested');
    await until('all containers are gone', async () => (await machines()).length === 0);
  });
});
