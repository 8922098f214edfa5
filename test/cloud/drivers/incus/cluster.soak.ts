// A real cluster of three as two regions of one server: the cluster, and a group of it. Machines are placed
// on members by us. A dead member is reported and its instances recover; the server survives a dead leader.

import assert from 'node:assert';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createIdentity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { buildHostImage, smallImage } from '#cloud/drivers/incus/images/image-recipe.ts';
import { instanceName } from '#cloud/drivers/incus/machine/instance.ts';
import type { HostChecks, HostView } from '#cloud/hosts/schema.ts';
import type { Instance } from '#cloud/schema.ts';
import { createSshClient, type SshClient } from '#test/support/conformance/ssh-client.ts';
import { type Cluster, type ClusterMember, startCluster } from '#test/support/lxd/lxd-cluster.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const patienceMs = 120_000;
const wholeRegion = 'us-east-1';
const groupRegion = 'europe-central-1';

describe('a cluster of three', { skip: noLxd, timeout: 420_000 }, () => {
  let cluster: Cluster;
  let server: TestServer;
  let owner: SessionFetch;
  let ssh: SshClient;
  const machines = new Map<string, string>();

  before(async () => {
    cluster = await startCluster(3);
    const { folder, members, network, addresses } = cluster;
    const [first] = members as [ClusterMember];
    await first.importImage(await buildHostImage(`${folder}/image`), smallImage);
    await first.request('POST', '/1.0/cluster/groups', { name: 'east', members: ['n3'] });
    const { certificate, key } = createIdentity('millrace');
    const files = { client_certificate: join(folder, 'crt'), client_key: join(folder, 'key') };
    writeFileSync(files.client_certificate, certificate);
    writeFileSync(files.client_key, key);
    await first.request('POST', '/1.0/certificates', {
      type: 'client',
      name: 'millrace',
      certificate: new X509Certificate(certificate).raw.toString('base64'),
    });
    const { environment } = await first.request<{
      environment: { certificate_fingerprint: string };
    }>('GET', '/1.0');
    const fingerprint = environment.certificate_fingerprint;
    const host = { url: first.url, fingerprint, network, addresses };
    ssh = createSshClient();
    server = await startTestServer({
      config: {
        cloud: {
          driver: 'none',
          host_grace_seconds: 1,
          ...files,
          hosts: [
            { name: 'group', region: groupRegion, target: '@east', ...host },
            { name: 'whole', region: wholeRegion, ...host },
          ],
        },
      },
    });
    owner = await server.join();
    const sshKey = { name: 'k', public_key: ssh.publicKey };
    assert.equal((await server.fetch('/api/v1/ssh-keys', { json: sshKey })).status, 200);
  });
  after(async () => {
    await server?.stop();
    ssh?.close();
    await cluster?.stop();
  });

  const member = (name: string) => cluster.members.find((one) => one.name === name)!;
  const listHosts = async () => {
    const response = await owner('/dashboard/api/hosts');
    return ((await response.json()) as { data: HostView[] }).data;
  };
  const show = async (name: string) => {
    const response = await server.fetch(`/api/v1/instances/${machines.get(name)}`);
    return ((await response.json()) as { data: Instance }).data;
  };
  const reach = (name: string, status: string) =>
    until(`${name} is ${status}`, async () => (await show(name)).status === status, patienceMs);
  const reasonOf = async (name: string) => {
    const response = await owner('/dashboard/api/instances');
    const { data } = (await response.json()) as { data: { id: string; status_reason: string }[] };
    return data.find(({ id }) => id === machines.get(name))?.status_reason ?? '';
  };
  const output = async (name: string, command: string) => {
    const { ip = '' } = await show(name);
    const { stdout, stderr } = await ssh.ssh({ ip, sshPort: 22 }, command);
    return stdout.trim() || stderr;
  };
  /** By the cluster's own word. */
  const locate = async (name: string, by = 'n1') => {
    const path = `/1.0/instances/${instanceName(machines.get(name) ?? '')}`;
    return (await member(by).request<{ location: string }>('GET', path)).location;
  };
  const launch = async (name: string, region: string, more: object = {}) => {
    const response = await server.fetch('/api/v1/instance-operations/launch', {
      json: {
        region_name: region,
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['k'],
        hostname: name,
        ...more,
      },
    });
    const answer = (await response.json()) as { data?: { instance_ids: string[] } };
    if (answer.data) machines.set(name, answer.data.instance_ids[0]!);
    return { status: response.status, answer };
  };
  const regionsWithRoom = async () => {
    const response = await server.fetch('/api/v1/instance-types');
    const { data } = (await response.json()) as {
      data: Record<string, { regions_with_capacity_available: { name: string }[] }>;
    };
    return data.cpu_1x_general?.regions_with_capacity_available.map(({ name }) => name) ?? [];
  };
  const leader = async (by: ClusterMember) => {
    type Row = { server_name: string; roles: string[] };
    const rows = await by.request<Row[]>('GET', '/1.0/cluster/members?recursion=1');
    return rows.find(({ roles }) => roles.includes('database-leader'))?.server_name ?? '';
  };

  test('a cluster and its group are two hosts, and each member is offered by only one of them', async () => {
    await until('both answer', async () =>
      (await listHosts()).every(({ status }) => status === 'online'),
    );
    const [group, whole] = (await listHosts()) as [HostView, HostView];
    assert.deepEqual(
      group.nodes.map(({ name }) => name),
      ['n3'],
    );
    assert.deepEqual(
      whole.nodes.map(({ name, online }) => `${name} ${online}`),
      ['n1 true', 'n2 true', 'n3 true'],
    );
    assert.equal(whole.reason, 'Nothing is placed on n3: another host has it already.');
    for (const { name } of [group, whole]) {
      const check = await owner(`/dashboard/api/hosts/${name}/check`, { json: {} });
      const { ok, checks } = (await check.json()) as HostChecks;
      assert(ok, JSON.stringify(checks));
    }
  });

  test('machines go to the chosen member, or to the one that has their filesystem', async () => {
    const volume = { name: 'shared', region: wholeRegion };
    assert.equal((await server.fetch('/api/v1/filesystems', { json: volume })).status, 200);
    const file_system_names = ['shared'];
    for (const [name, region, more] of [
      ['writer', wholeRegion, { file_system_names }],
      ['reader', wholeRegion, { file_system_names }],
      ['other', wholeRegion, {}],
      ['grouped', groupRegion, {}],
    ] as const) {
      const { status, answer } = await launch(name, region, more);
      assert.equal(status, 200, JSON.stringify(answer));
    }
    for (const name of machines.keys()) {
      await reach(name, 'active');
      assert.equal(await output(name, 'hostname'), name);
    }
    const home = await locate('writer');
    assert.equal(await locate('reader'), home);
    assert.deepEqual([home, await locate('other')].sort(), ['n1', 'n2']);
    assert.equal(await locate('grouped'), 'n3');
    await output('writer', 'echo hello > /lambda/nfs/shared/note');
    assert.equal(await output('reader', 'cat /lambda/nfs/shared/note'), 'hello');
    const path = '/1.0/storage-pools/default/volumes/custom?recursion=1';
    const volumes = await member('n1').request<{ location: string }[]>('GET', path);
    assert.deepEqual(
      volumes.map(({ location }) => location),
      [home],
    );
  });

  test('a dead member has no capacity and its instances are unhealthy with a reason, until it is back', async () => {
    assert((await regionsWithRoom()).includes(groupRegion));
    await member('n3').kill();
    await reach('grouped', 'unhealthy');
    assert.match(await reasonOf('grouped'), /^Node n3 of host group is offline\./);
    assert(!(await regionsWithRoom()).includes(groupRegion));
    assert.equal((await launch('refused', groupRegion)).status, 400);
    assert.equal((await show('writer')).status, 'active');
    assert.equal(await output('grouped', 'echo it runs on'), 'it runs on');
    await member('n3').start();
    await reach('grouped', 'active');
    await until('there is room again', async () => (await regionsWithRoom()).includes(groupRegion));
  });

  test('after the leader’s death the API works and a launch succeeds', async (context) => {
    const dead = await leader(member('n1'));
    const [other = ''] = ['n3', 'n2'].filter((name) => name !== dead);
    context.diagnostic(`the leader is ${dead}; the server was told of n1`);
    await member(dead).kill();
    const begun = performance.now();
    const region = dead === 'n3' ? wholeRegion : groupRegion;
    await until(
      'a launch is taken',
      async () => (await launch('after', region)).status === 200,
      patienceMs,
    );
    await reach('after', 'active');
    assert.equal(await output('after', 'hostname'), 'after');
    context.diagnostic(`a machine ${Math.round(performance.now() - begun)} ms after the death`);
    const next = await leader(member(other));
    assert(next !== '' && next !== dead, `the leader is ${next}`);
    const onDead = dead === 'n3' ? 'grouped' : dead === 'n2' ? 'other' : 'writer';
    const held = [...machines.keys()];
    await member(dead).start();
    for (const name of held) await reach(name, 'active');
    assert.equal(await output(onDead, 'hostname'), onDead);
  });

  test('terminated machines and deleted filesystems are gone from the cluster', async () => {
    const instance_ids = [...machines.values()];
    await server.fetch('/api/v1/instance-operations/terminate', { json: { instance_ids } });
    for (const name of machines.keys()) await reach(name, 'terminated');
    const listed = await server.fetch('/api/v1/file-systems');
    const { data } = (await listed.json()) as { data: { id: string }[] };
    for (const { id } of data) {
      const removed = await server.fetch(`/api/v1/filesystems/${id}`, { method: 'DELETE' });
      assert.equal(removed.status, 200);
    }
    assert.deepEqual(await member('n2').request('GET', '/1.0/instances'), []);
    const path = '/1.0/storage-pools/default/volumes/custom';
    await until('the volume is gone', async () => {
      const volumes = await member('n2').request<string[]>('GET', path);
      return volumes.length === 0;
    });
  });
});
