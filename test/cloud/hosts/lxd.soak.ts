// Two real LXD daemons as two regions of one server: they are enrolled by token over HTTPS and launched on, and
// one of them is killed and started again.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import type { HostChecks, HostView } from '#cloud/hosts/schema.ts';
import type { Instance } from '#cloud/schema.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import { createSshClient, type SshClient } from '#test/support/conformance/ssh-client.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { makeToken, noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const regions = ['us-east-1', 'europe-central-1'];

describe('two LXD hosts', { skip: noLxd, timeout: 180_000 }, () => {
  const daemons: Lxd[] = [];
  let server: TestServer;
  let owner: SessionFetch;
  let ssh: SshClient;
  before(async () => {
    daemons.push(await startSmallLxd(), await startSmallLxd());
    ssh = createSshClient();
    server = await startTestServer({
      config: { cloud: { driver: 'none', host_grace_seconds: 1 } },
    });
    owner = await server.join();
    const key = { name: 'k', public_key: ssh.publicKey };
    assert.equal((await server.fetch('/api/v1/ssh-keys', { json: key })).status, 200);
  });
  after(async () => {
    await server?.stop();
    ssh?.close();
    for (const daemon of daemons) await daemon.stop();
  });

  const nameOf = (region: string) => `host-of-${region}`;
  const listHosts = async () => {
    const response = await owner('/dashboard/api/hosts');
    return ((await response.json()) as { data: HostView[] }).data;
  };
  const instance = async (id: string) => {
    const response = await server.fetch(`/api/v1/instances/${id}`);
    return ((await response.json()) as { data: Instance }).data;
  };
  const launched = new Map<string, string>();

  test('each host is enrolled by a token, answers and passes its checks', async () => {
    for (const [index, region] of regions.entries()) {
      const daemon = daemons[index] as Lxd;
      const response = await owner('/dashboard/api/hosts', {
        json: {
          name: nameOf(region),
          region,
          token: await makeToken(daemon),
          network: daemon.network,
        },
      });
      const host = (await response.json()) as HostView;
      assert.equal(response.status, 200, JSON.stringify(host));
      assert.equal(host.status, 'online', host.reason ?? '');
      assert.match(host.engine ?? '', /^lxd \d/);
      assert.equal(host.url, daemon.httpsUrl);
      assert((host.nodes[0]?.vcpus ?? 0) > 0);
      const check = await owner(`/dashboard/api/hosts/${host.name}/check`, { json: {} });
      const { ok, checks } = (await check.json()) as HostChecks;
      assert(ok, JSON.stringify(checks));
    }
  });

  test('the region of a launch selects the host, and ssh answers there', async () => {
    for (const region of regions) {
      const response = await server.fetch('/api/v1/instance-operations/launch', {
        json: {
          region_name: region,
          instance_type_name: 'cpu_1x_general',
          ssh_key_names: ['k'],
          hostname: `in-${region}`,
        },
      });
      const { data } = (await response.json()) as { data: { instance_ids: string[] } };
      assert.equal(response.status, 200, JSON.stringify(data));
      launched.set(region, data.instance_ids[0] as string);
    }
    for (const [region, id] of launched) {
      await until(
        `${region} is active`,
        async () => (await instance(id)).status === 'active',
        60_000,
      );
      const { ip = '' } = await instance(id);
      const { stdout } = await ssh.ssh({ ip, sshPort: 22 }, 'hostname');
      assert.equal(stdout.trim(), `in-${region}`);
    }
    const hosts = await listHosts();
    assert.deepEqual(
      hosts.map(({ instances }) => instances),
      [1, 1],
    );
  });

  test('a killed daemon makes only its own instance unhealthy, until it is started again', async () => {
    const [east = '', europe = ''] = regions.map((region) => launched.get(region) ?? '');
    await daemons[1]?.kill();
    const isUnhealthy = async () => (await instance(europe)).status === 'unhealthy';
    await until('the machine is unhealthy', isUnhealthy, 60_000);
    assert.equal((await instance(east)).status, 'active');
    const details = await owner('/dashboard/api/instances');
    const { data } = (await details.json()) as { data: { id: string; status_reason: string }[] };
    const reason = data.find(({ id }) => id === europe)?.status_reason ?? '';
    assert.match(reason, /^Host host-of-europe-central-1 has not answered since 2/);
    await daemons[1]?.start();
    await until(
      'it is active again',
      async () => (await instance(europe)).status === 'active',
      60_000,
    );
  });

  test('machines of terminated instances are removed from their hosts', async () => {
    const instance_ids = [...launched.values()];
    await server.fetch('/api/v1/instance-operations/terminate', { json: { instance_ids } });
    for (const id of instance_ids) {
      await until(
        `${id} is gone`,
        async () => (await instance(id)).status === 'terminated',
        60_000,
      );
    }
    for (const daemon of daemons) {
      assert.deepEqual(await daemon.request('GET', '/1.0/instances'), []);
    }
  });
});
