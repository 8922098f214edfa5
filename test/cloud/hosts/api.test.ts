// Hosts over HTTP and in the CLI, against real servers: who may change them, what is refused and with which
// message.

import assert from 'node:assert';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { HostChecks, HostView } from '#cloud/hosts/schema.ts';
import { publicKey } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';
import {
  makeFolder,
  type RunningProcess,
  readFirstSecret,
  runMillrace,
  serveMillrace,
} from '#test/support/process.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const dead = { region: 'us-east-1', url: 'unix:/nonexistent/socket' };

for (const database of databases) {
  describe(`the hosts API on ${database}`, () => {
    let server: TestServer;
    let owner: SessionFetch;
    const call = async <Answer>(path: string, init?: Parameters<SessionFetch>[1], as = owner) => {
      const response = await as(`/dashboard/api/hosts${path}`, init);
      return { status: response.status, body: (await response.json()) as Answer };
    };
    interface Failure {
      error: { code: string; message: string; param: string | null };
    }
    before(async () => {
      server = await startTestServer({
        database,
        config: { cloud: { host_name: 'here', hosts: [{ name: 'filed', ...dead }] } },
      });
      owner = await server.join();
    });

    test('the server’s own host and the hosts of the configuration file exist from the start', async () => {
      const { body } = await call<{ data: HostView[] }>('');
      assert.deepEqual(
        body.data.map(({ name, source, status, driver }) => [name, source, status, driver]).sort(),
        [
          ['filed', 'file', 'offline', 'incus'],
          ['here', 'builtin', 'online', 'scripted'],
        ],
      );
      const here = body.data.find(({ name }) => name === 'here');
      assert.deepEqual(here?.nodes, [
        {
          name: 'here',
          online: true,
          vcpus: 8,
          vcpus_used: 0,
          memory_gib: 32,
          memory_gib_used: 0,
          storage_gib: 512,
          storage_gib_used: 0,
          gpus: [],
        },
      ]);
    });

    test('a host that does not answer can be added, is shown with the reason, and can be removed', async () => {
      const added = await call<HostView>('', { json: { name: 'dead', ...dead } });
      assert.equal(added.status, 200);
      assert.equal(added.body.status, 'offline');
      assert.match(added.body.reason ?? '', /ENOENT|socket|answer/);
      const again = await call<Failure>('', { json: { name: 'dead', ...dead } });
      assert.equal(again.status, 409);
      assert.equal(again.body.error.message, 'A host named dead already exists.');
      const checked = await call<HostChecks>('/dead/check', { json: {} });
      assert.equal(checked.body.ok, false);
      assert.deepEqual(
        checked.body.checks.map(({ name, ok }) => [name, ok]),
        ['reachability', 'trust', 'storage', 'network', 'images', 'gpus'].map((one) => [
          one,
          false,
        ]),
      );
      const drained = await call<HostView>('/dead', { method: 'PATCH', json: { draining: true } });
      assert.deepEqual([drained.body.status, drained.body.draining], ['offline', true]);
      assert.equal((await call('/dead', { method: 'DELETE' })).status, 200);
      assert.equal((await call('/dead', { method: 'DELETE' })).status, 404);
      const events = await owner('/dashboard/api/audit-events');
      const actions = ((await events.json()) as { data: { action: string }[] }).data
        .map(({ action }) => action)
        .filter((action) => action.startsWith('host.'));
      assert.deepEqual(actions, ['host.removed', 'host.drained', 'host.added']);
    });

    test('invalid input is refused with the name of the member', async () => {
      const cases: [Record<string, unknown>, string][] = [
        [{ name: 'x', region: 'us-east-1' }, 'token'],
        [{ name: 'x', ...dead, region: 'moon-1' }, 'region'],
        [{ name: 'x', region: 'us-east-1', token: 'bm8=' }, 'token'],
        [{ name: 'Not A Name', ...dead }, 'name'],
        [{ name: 'x', region: 'us-east-1', url: 'http://plain' }, 'url'],
        [{ name: 'x', region: 'us-east-1', url: 'https://[:1' }, 'url'],
      ];
      for (const [json, param] of cases) {
        const { status, body } = await call<Failure>('', { json });
        assert.equal(status, 400, JSON.stringify(json));
        assert.equal(body.error.param, param, JSON.stringify(body));
      }
    });

    test('a host with instances, a host of the file and this server’s own host cannot be removed', async () => {
      const filed = await call<Failure>('/filed', { method: 'DELETE' });
      assert.match(filed.body.error.message, /configuration file/);
      const own = await call<Failure>('/here', { method: 'DELETE' });
      assert.equal(own.status, 409);
      await server.fetch('/api/v1/ssh-keys', { json: { name: 'k', public_key: publicKey } });
      const launched = await server.fetch('/api/v1/instance-operations/launch', {
        json: {
          region_name: 'us-west-1',
          instance_type_name: 'cpu_2x_general',
          ssh_key_names: ['k'],
        },
      });
      assert.equal(launched.status, 200);
      const { body } = await call<{ data: HostView[] }>('');
      const here = body.data.find(({ name }) => name === 'here');
      assert.deepEqual([here?.instances, here?.nodes[0]?.vcpus_used], [1, 2]);
    });

    test('draining takes effect at once and can be undone', async () => {
      const patch = (draining: boolean) =>
        call<HostView>('/here', { method: 'PATCH', json: { draining } });
      assert.equal((await patch(true)).body.status, 'draining');
      const types = await server.fetch('/api/v1/instance-types');
      const { data } = (await types.json()) as {
        data: Record<string, { regions_with_capacity_available: unknown[] }>;
      };
      assert.deepEqual(data.cpu_1x_general?.regions_with_capacity_available, []);
      assert.equal((await patch(false)).body.status, 'online');
    });

    test('only owners may change hosts; other members may read them', async () => {
      const invited = await owner('/dashboard/api/invitations', { json: { role: 'member' } });
      const { link } = (await invited.json()) as { link: string };
      const member = await server.joinBy(link, 'member@example.com');
      assert.equal((await call('', undefined, member)).status, 200);
      for (const [path, init] of [
        ['', { json: { name: 'x', ...dead } }],
        ['/here', { method: 'PATCH', json: { draining: true } }],
        ['/here', { method: 'DELETE' }],
        ['/here/check', { json: {} }],
      ] as const) {
        assert.equal((await call(path, init, member)).status, 403, path);
      }
      const key = await server.fetch('/dashboard/api/hosts');
      assert.equal(key.status, 403, 'an API key is not a session');
    });
  });
}

describe('the CLI and hosts', () => {
  let server: RunningProcess;
  let env: Record<string, string>;
  const run = (...words: string[]) => runMillrace(words, { env });
  before(async () => {
    const folder = makeFolder();
    const config = join(folder, 'millrace.yaml');
    writeFileSync(config, 'cloud:\n  driver: scripted\n  host_name: here\n');
    server = await serveMillrace(['--config', config]);
    env = { HOME: folder, MILLRACE_URL: server.url };
    const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
    const response = await fetch(`${server.url}/dashboard/api/join`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, email: 'me@example.com', password: 'correct horse battery' }),
    });
    const session = /millrace_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1];
    mkdirSync(join(folder, '.config', 'millrace'), { recursive: true });
    const saved = join(folder, '.config', 'millrace', 'session.json');
    writeFileSync(saved, JSON.stringify({ url: server.url, session }));
  });

  test('the commands add, list, check, drain and remove hosts', async () => {
    const added = await run('hosts', 'add', 'far', '--region', dead.region, '--url', dead.url);
    assert.equal(added.code, 0, added.stderr);
    assert.match(added.stdout, /^Added host far to us-east-1\.\n {2}FAIL {2}reachability/);
    const list = await run('hosts', 'list');
    assert.match(list.stdout, /^NAME +REGION +STATUS/);
    assert.match(list.stdout, /here +us-west-1 +online +scripted +1\/1 +0\/8 +0\/32 GiB +0\/0 +0/);
    assert.match(list.stdout, /far +us-east-1 +offline/);
    assert.match(list.stderr, /^far: /m);
    const own = await run('hosts', 'check', 'here');
    assert.equal(own.code, 0, own.stdout);
    const all = await run('hosts', 'check');
    assert.equal(all.code, 1, 'one of the checks failed');
    assert.equal(
      (await run('hosts', 'drain', 'far')).stdout,
      'Draining host far. Instances still on it: 0.\n',
    );
    assert.equal(
      (await run('hosts', 'resume', 'far')).stdout,
      'Resumed host far. Its status is offline.\n',
    );
    const refused = await run('hosts', 'remove', 'far');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^Remove host far\? .* needs --yes\. Nothing was changed\.\n$/);
    const remove = () => run('hosts', 'remove', 'far', '--yes');
    assert.equal((await remove()).stdout, 'Removed host far.\n');
    assert.equal((await remove()).stderr, 'There is no host far. See `./millrace hosts list`.\n');
  });

  test('without a token or a url no request is sent', async () => {
    const { code, stderr } = await run('hosts', 'add', 'x', '--region', 'us-east-1');
    assert.equal(code, 2);
    assert.match(stderr, /--token/);
  });
});
