// What becomes of a person's ssh when the person is removed: sessions end and keys are refused, on every machine.

import assert from 'node:assert';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { createSshClient, type SshClient } from '#test/support/conformance/ssh-client.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const api = '/dashboard/api';

async function read<Data>(response: Response): Promise<Data> {
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Data;
}

async function invite(server: TestServer, owner: SessionFetch, name: string) {
  const invited = await owner(`${api}/invitations`, { json: { role: 'member' } });
  const { link } = await read<{ link: string }>(invited);
  const session = await server.joinBy(link, `${name}@example.com`);
  const { id } = await read<{ id: string }>(await session(`${api}/me`));
  return { session, id };
}

async function addKey(
  { url: origin }: TestServer,
  session: SessionFetch,
  name: string,
  { publicKey }: SshClient,
) {
  const headers = { origin };
  const json = { name, public_key: publicKey };
  const { data } = await read<{ data: { id: string } }>(
    await session('/api/v1/ssh-keys', { json, headers }),
  );
  return data.id;
}

async function launch(server: TestServer, name: string, key: string) {
  const json = {
    ...{ region_name: 'us-west-1', instance_type_name: 'cpu_1x_general' },
    ...{ ssh_key_names: [key], name },
  };
  const headers = { authorization: `Bearer ${server.key}` };
  const { data } = await read<{ data: { instance_ids: [string] } }>(
    await server.fetch('/api/v1/instance-operations/launch', { json, headers }),
  );
  const [id] = data.instance_ids;
  const machine = await until(`${name} is active`, async () => {
    const response = await server.fetch(`/api/v1/instances/${id}`, { headers });
    const { data } = await read<{ data: { status: string; ip: string; ssh_port?: number } }>(
      response,
    );
    return data.status === 'active' ? data : null;
  });
  return { id, ip: machine.ip, sshPort: machine.ssh_port ?? 22 };
}

describe('ssh of a removed person', { skip: noSsh, timeout: 120_000 }, () => {
  test('ends on every machine at once, and that of others goes on', async (context) => {
    const config = { cloud: { driver: 'sandbox' as const } };
    const server = await startTestServer({ config });
    const [anns, mine] = [createSshClient(), createSshClient()];
    context.after(() => [anns, mine].map((client) => client.close()));
    const owner = await server.join();
    const ann = await invite(server, owner, 'ann');
    const keyId = await addKey(server, ann.session, 'ann', anns);
    await addKey(server, owner, 'owner', mine);
    const hers = await launch(server, 'hers', 'ann');
    const shared = await launch(server, 'shared', 'owner');
    // What an owner does for a colleague, without telling the server.
    const line = `echo '${anns.publicKey}' >> ~/.ssh/authorized_keys`;
    assert.equal((await mine.ssh(shared, line)).code, 0);

    const open = async (client: SshClient, machine: typeof hers) => {
      const session = client.spawnSsh(machine, ['echo in; exec cat']);
      await once(session.stdout!, 'data');
      return session;
    };
    const sessions = [await open(anns, hers), await open(anns, shared)];
    const other = await open(mine, shared);
    const lost = {
      ssh_keys: [{ id: keyId, name: 'ann' }],
      machines: [{ id: hers.id, name: 'hers' }],
    };
    assert.deepEqual(await read(await owner(`${api}/members/${ann.id}/ssh`)), lost);

    const ended = Promise.all(sessions.map((session) => once(session, 'exit')));
    const removed = await owner(`${api}/members/${ann.id}`, { method: 'DELETE' });
    assert.deepEqual(await read(removed), { ok: true, revoked_keys: 0, ...lost });
    const at = performance.now();
    await ended;
    assert(performance.now() - at < 2_000, 'sessions end at once');
    for (const machine of [hers, shared]) {
      const { code, stderr } = await anns.ssh(machine, 'true');
      assert.equal(code, 255);
      assert.match(stderr, /Permission denied/);
    }
    other.stdin!.end('still here');
    assert.equal(String((await once(other.stdout!, 'data'))[0]), 'still here');
    const { data: keys } = await read<{ data: { name: string }[] }>(
      await owner('/api/v1/ssh-keys'),
    );
    assert.deepEqual(
      keys.map(({ name }) => name),
      ['owner'],
    );

    await server.stop();
    const next = await startTestServer({ config, on: server, presetApiKey: server.key });
    await until(
      'the machine is served again',
      async () => (await mine.ssh(shared, 'true')).code === 0,
    );
    assert.equal((await anns.ssh(shared, 'true')).code, 255, 'a new server refuses it too');
    const headers = { authorization: `Bearer ${server.key}` };
    await next.fetch('/api/v1/instance-operations/terminate', {
      json: { instance_ids: [hers.id, shared.id] },
      headers,
    });
    await until('the machines are gone', async () => {
      const response = await next.fetch('/api/v1/instances', { headers });
      return (await read<{ data: unknown[] }>(response)).data.length === 0;
    });
  });
});
