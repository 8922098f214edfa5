// Several hosts: regions, placement, and what happens to instances while a host is silent and after it returns.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { NodeReport } from '#cloud/drivers/driver.ts';
import { ensureFileHosts, type FileHost } from '#cloud/hosts/file-hosts.ts';
import { parseExtras } from '#cloud/hosts/host.ts';
import type { Filesystem, Image, InstanceTypes } from '#cloud/schema.ts';
import { startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';
import { until } from '#test/support/until.ts';

const typesOf = async ({ call }: TestCloud) =>
  (await call<InstanceTypes>('GET', '/instance-types')).body.data;

const regionsOf = async (cloud: TestCloud, type: string) =>
  (await typesOf(cloud))[type]?.regions_with_capacity_available.map(({ name }) => name);

const rowOf = ({ db }: TestCloud, id: string) =>
  db.selectFrom('instances').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

const terminate = ({ call }: TestCloud, id: string) =>
  call('POST', '/instance-operations/terminate', { instance_ids: [id] });

const ownerOf = ({ accountId }: TestCloud) => ({
  ...{ kind: 'session' as const, role: 'owner' as const, accountId },
  ...{ sessionId: 's', userId: 'u', email: 'me@example.com', address: '127.0.0.1' },
});

const node = (name: string, over: Partial<NodeReport> = {}): NodeReport => ({
  name,
  online: true,
  vcpus: 8,
  memoryGib: 32,
  storageGib: 100,
  gpus: [],
  ...over,
});

for (const database of databases) {
  describe(`hosts on ${database}`, () => {
    test('each region has its own hosts, types and capacity', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 2 } } });
      const gpus = [{ address: '0000:01:00.0', model: 'NVIDIA H200', memoryGib: 141 }];
      const far = await cloud.addHost('far', 'europe-central-1', { report: { vcpus: 4, gpus } });
      assert.deepEqual(await regionsOf(cloud, 'cpu_1x_general'), ['us-west-1', 'europe-central-1']);
      assert.deepEqual(await regionsOf(cloud, 'gpu_1x_h200'), ['europe-central-1']);
      const near = await cloud.launchActive();
      const there = await cloud.launchActive({
        region_name: 'europe-central-1',
        instance_type_name: 'gpu_1x_h200',
      });
      assert.deepEqual(await cloud.driver.list(), [near]);
      assert.deepEqual(await far.list(), [there]);
      assert.equal((await cloud.instance(there)).region.name, 'europe-central-1');
      const { status } = await cloud.call('POST', '/instance-operations/launch', {
        region_name: 'us-west-1',
        instance_type_name: 'gpu_1x_h200',
        ssh_key_names: ['laptop'],
      });
      assert.equal(status, 400, 'a GPU of another region is not available here');
    });

    test('capacity is what fits on one node, not the sum over all nodes', async () => {
      const nodes = [node('n1', { vcpus: 2 }), node('n2', { vcpus: 2 }), node('n3', { vcpus: 4 })];
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const cluster = await cloud.addHost('cluster', 'us-east-1', {
        report: { vcpus: 8, memoryGib: 96, nodes },
      });
      const there = { region_name: 'us-east-1' };
      const id = await cloud.launchActive({ ...there, instance_type_name: 'cpu_4x_general' });
      assert.equal(cluster.find(id)?.spec.node, 'n3');
      assert.deepEqual(await regionsOf(cloud, 'cpu_4x_general'), []);
      assert.deepEqual(await regionsOf(cloud, 'cpu_2x_general'), ['us-east-1']);
      const nodesOfNext = [];
      for (let count = 0; count < 2; count++) {
        const next = await cloud.launchActive({ ...there, instance_type_name: 'cpu_2x_general' });
        nodesOfNext.push(cluster.find(next)?.spec.node);
      }
      assert.deepEqual(nodesOfNext.sort(), ['n1', 'n2']);
    });

    test('a silent host makes its instances unhealthy, and nothing is deleted', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1');
      const near = await cloud.launchActive();
      const id = await cloud.launchActive({ region_name: 'us-east-1' });
      far.goAway();
      await cloud.refreshAfter(61_000);
      assert.deepEqual(await regionsOf(cloud, 'cpu_1x_general'), ['us-west-1'], 'capacity is 0');
      assert.equal((await cloud.instance(id)).status, 'active', 'within the grace period');
      await cloud.refreshAfter(15_000);
      assert.equal((await cloud.instance(id)).status, 'unhealthy');
      const { status_reason } = await rowOf(cloud, id);
      assert.match(
        status_reason ?? '',
        /^Host far has not answered since 2026-01-01T\d\d:\d\d:\d\d\.\d{3}Z\. The scripted host is switched off\.$/,
      );
      for (let round = 0; round < 5; round++) {
        await cloud.refreshAfter(60_000);
        await cloud.settle();
        await cloud.cloud.reconciler.observeSome();
        await cloud.cloud.orphans.sweep();
      }
      assert.equal((await cloud.instance(near)).status, 'active');
      assert.equal((await cloud.instance(id)).status, 'unhealthy');
      assert.deepEqual(
        far.calls.filter((call) => call.startsWith('terminate')),
        [],
      );

      far.comeBack();
      await cloud.refreshAfter(15_000);
      await cloud.settle();
      assert.equal((await cloud.instance(id)).status, 'active');
      assert.equal((await rowOf(cloud, id)).status_reason, null);
      const events = await cloud.db
        .selectFrom('audit_events')
        .select('action')
        .where('resource_id', '=', id)
        .orderBy('at')
        .execute();
      assert.deepEqual(
        events.map(({ action }) => action),
        ['instance.created', 'instance.became_unhealthy', 'instance.recovered'],
      );
      assert.equal(
        far.calls.filter((call) => call === `launch ${id}`).length,
        1,
        'not launched again',
      );
      assert.deepEqual(await regionsOf(cloud, 'cpu_1x_general'), ['us-west-1', 'us-east-1']);
    });

    test('a termination waits until a silent host returns', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1');
      const id = await cloud.launchActive({ region_name: 'us-east-1' });
      far.goAway();
      await cloud.refreshAfter(61_000);
      await cloud.refreshAfter(16_000);
      await terminate(cloud, id);
      await cloud.cloud.reconciler.settle();
      await cloud.refreshAfter(600_000);
      await cloud.cloud.reconciler.settle();
      assert.equal((await cloud.instance(id)).status, 'terminating');
      assert.equal((await rowOf(cloud, id)).attempts, 0, 'no call is made to a silent host');
      far.comeBack();
      await cloud.refreshAfter(15_000);
      await cloud.settle();
      assert.equal((await cloud.instance(id)).status, 'terminated');
      assert.deepEqual(await far.list(), []);
    });

    test('when a host returns, booting instances continue to boot and dead ones are unhealthy with the reason', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1');
      const dead = await cloud.launchActive({ region_name: 'us-east-1' });
      const slow = await cloud.launch({ region_name: 'us-east-1', hostname: 'slow' });
      far.goAway();
      await cloud.refreshAfter(61_000);
      await cloud.refreshAfter(16_000);
      assert.equal((await cloud.instance(slow)).status, 'unhealthy');
      far.comeBack();
      far.kill(dead, 'The power failed.');
      await cloud.refreshAfter(15_000);
      await cloud.cloud.reconciler.settle();
      assert.equal((await cloud.instance(slow)).status, 'booting');
      await cloud.settle();
      assert.equal((await cloud.instance(slow)).status, 'active');
      assert.equal((await cloud.instance(dead)).status, 'unhealthy');
      assert.equal((await rowOf(cloud, dead)).status_reason, 'The power failed.');
    });

    test('an offline node makes only its own instances unhealthy', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const report = { vcpus: 16, nodes: [node('n1'), node('n2')] };
      const cluster = await cloud.addHost('cluster', 'us-east-1', { report });
      const there = { region_name: 'us-east-1' };
      const ids = [await cloud.launchActive(there), await cloud.launchActive(there)];
      const [on1, on2] = ['n1', 'n2'].map((name) =>
        ids.find((id) => cluster.find(id)?.spec.node === name),
      );
      assert(on1 && on2, 'instances are spread');
      cluster.become({
        nodes: [node('n1', { online: false, vcpus: 0, memoryGib: 0 }), node('n2')],
      });
      await cloud.refreshAfter(61_000);
      assert.equal((await cloud.instance(on1)).status, 'unhealthy');
      assert.equal((await rowOf(cloud, on1)).status_reason, 'Node n1 of host cluster is offline.');
      assert.equal((await cloud.instance(on2)).status, 'active');
      assert.equal(cluster.find(await cloud.launchActive(there))?.spec.node, 'n2');
      cluster.become({ nodes: [node('n1'), node('n2')] });
      await cloud.refreshAfter(61_000);
      await cloud.settle();
      assert.equal((await cloud.instance(on1)).status, 'active');
    });

    test('a dead host does not prevent a start, and its last report is read from its row', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1', { report: { vcpus: 3 } });
      far.goAway();
      const again = await cloud.another();
      await again.hosts.refresh();
      const host = again.hosts.all().find(({ row }) => row.name === 'far');
      assert.equal(host?.online, false);
      assert.equal(host?.report?.vcpus, 3);
      assert(again.offers().find('cpu_3x_general') !== undefined, 'its types are still listed');
    });

    test('a failed call makes the next refresh probe the host', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1');
      await cloud.launchActive({ region_name: 'us-east-1' });
      far.goAway();
      await cloud.refreshAfter(1);
      assert.equal(cloud.cloud.hosts.reachable().length, 2, 'the next probe is not due yet');
      await cloud.cloud.reconciler.observeSome();
      await cloud.refreshAfter(1);
      assert.equal(cloud.cloud.hosts.reachable().length, 1);
    });

    test('a draining host gets no new instances and keeps the ones it has', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1');
      const id = await cloud.launchActive({ region_name: 'us-east-1' });
      await cloud.db.updateTable('hosts').set({ draining: 1 }).where('name', '=', 'far').execute();
      const launch = () =>
        cloud.call('POST', '/instance-operations/launch', {
          region_name: 'us-east-1',
          instance_type_name: 'cpu_1x_general',
          ssh_key_names: ['laptop'],
        });
      assert.equal((await launch()).status, 400, 'even before this process has read the row');
      await cloud.refreshAfter(1);
      assert.deepEqual(await regionsOf(cloud, 'cpu_1x_general'), ['us-west-1']);
      assert.equal((await cloud.instance(id)).status, 'active');
      await terminate(cloud, id);
      await cloud.settle();
      assert.deepEqual(await far.list(), []);
    });

    test('a host can be removed once it has no instances and no filesystems', async () => {
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1');
      const id = await cloud.launchActive({ region_name: 'us-east-1' });
      const { body } = await cloud.call<Filesystem>('POST', '/filesystems', {
        name: 'data',
        region: 'us-east-1',
      });
      await cloud.settle();
      const principal = ownerOf(cloud);
      const remove = () => cloud.cloud.hostChanges.remove(principal, 'far', false);
      await assert.rejects(remove, /has 1 instances/);
      await terminate(cloud, id);
      await assert.rejects(remove, /has 1 instances/, 'a terminating instance still counts');
      await cloud.settle();
      await assert.rejects(remove, /has 1 filesystems/);
      await cloud.call('DELETE', `/filesystems/${body.data.id}`);
      await cloud.cloud.reconciler.settle();
      await remove();
      assert.deepEqual(await far.list(), []);
      assert.deepEqual(await regionsOf(cloud, 'cpu_1x_general'), ['us-west-1']);
      await assert.rejects(remove, /does not exist/);
    });

    test('the instances of a host can be forgotten only while it is silent', async () => {
      const gpus = [{ address: '0000:01:00.0', model: 'NVIDIA H200', memoryGib: 141 }];
      const cloud = await startCloud(database);
      const far = await cloud.addHost('far', 'us-east-1', { report: { gpus } });
      const over = { region_name: 'us-east-1', instance_type_name: 'gpu_1x_h200' };
      const id = await cloud.launchActive(over);
      const forget = () => cloud.cloud.hostChanges.remove(ownerOf(cloud), 'far', true);
      await assert.rejects(forget, /Host far answers/);
      far.goAway();
      await cloud.refreshAfter(61_000);
      await forget();
      assert.equal((await cloud.instance(id)).status, 'terminated');
      assert.deepEqual(await cloud.db.selectFrom('instance_gpus').selectAll().execute(), []);
      await cloud.settle();
    });

    test('a node in two hosts is used by one of them, and neither sweeps the machines of the other', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const gpus = [{ address: '0000:01:00.0', model: 'NVIDIA H200', memoryGib: 141 }];
      const report = { identity: 'ab', nodes: [node('n1', { gpus })] };
      const cluster = await cloud.addHost('cluster', 'us-east-1', { report });
      cloud.clock.turn(1);
      const group = await cloud.addHost('group', 'us-east-2', { report });
      assert.deepEqual(await regionsOf(cloud, 'gpu_1x_h200'), ['us-east-1']);
      const { reason } = cloud.cloud.hosts.all().find(({ row }) => row.name === 'group') ?? {};
      assert.equal(reason, 'Nothing is placed on n1: another host has it already.');
      const id = await cloud.launchActive({ region_name: 'us-east-1' });
      // Both hosts are one endpoint, which lists all of its machines for each.
      group.list = cluster.list;
      for (let round = 0; round < 3; round++) await cloud.cloud.orphans.sweep();
      assert.deepEqual(await cluster.list(), [id]);
      assert(!group.calls.includes(`terminate ${id}`));
    });

    test('groups of one cluster never assign one address twice', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const addressPool = { first: '10.9.0.1', last: '10.9.0.4' };
      for (const [index, region] of ['us-east-1', 'us-east-2'].entries()) {
        const nodes = [node(`n${index}`, {})];
        await cloud.addHost(`group${index}`, region, {
          report: { identity: 'ab', addressPool, nodes },
        });
      }
      for (const region_name of ['us-east-1', 'us-east-2', 'us-east-1', 'us-east-2']) {
        await cloud.launchActive({ region_name });
      }
      const rows = await cloud.db.selectFrom('instances').select('address').execute();
      assert.deepEqual(rows.map(({ address }) => address).sort(), [
        '10.9.0.1',
        '10.9.0.2',
        '10.9.0.3',
        '10.9.0.4',
      ]);
    });

    test('a filesystem is created where its first instance is, and later instances are placed there', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const region = 'us-east-1';
      const one = await cloud.addHost('one', region, { report: { vcpus: 4, memoryGib: 16 } });
      const two = await cloud.addHost('two', region, { report: { vcpus: 8, memoryGib: 32 } });
      const { body } = await cloud.call<Filesystem>('POST', '/filesystems', {
        name: 'data',
        region,
      });
      await cloud.settle();
      const made = (call: string) => call === `createFilesystem ${body.data.id}`;
      assert(!one.calls.some(made) && !two.calls.some(made), 'no instance has mounted it yet');
      const over = { region_name: region, file_system_names: ['data'] };
      await cloud.launchActive({ ...over, instance_type_name: 'cpu_4x_general' });
      assert(two.calls.some(made) && !one.calls.some(made));
      for (let count = 0; count < 4; count++) await cloud.launchActive(over);
      assert.equal((await two.list()).length, 5);
      const full = await cloud.call('POST', '/instance-operations/launch', {
        ...over,
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['laptop'],
      });
      assert.match(full.body.error.code, /insufficient-capacity/);
      await cloud.launchActive({ region_name: region });
      assert.equal((await one.list()).length, 1, 'without the filesystem there is capacity');
    });

    test('all hosts that share a directory reach the filesystems in it', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const region = 'us-east-1';
      const shared = { filesystems_path: '/srv/shared' };
      const small = { report: { vcpus: 1, memoryGib: 4 } };
      const hosts = [
        await cloud.addHost('one', region, small, shared),
        await cloud.addHost('two', region, small, shared),
        await cloud.addHost('apart', region, { report: { vcpus: 64, memoryGib: 256 } }),
      ];
      await cloud.call('POST', '/filesystems', { name: 'data', region });
      await cloud.db
        .updateTable('hosts')
        .set({ draining: 1 })
        .where('name', '=', 'apart')
        .execute();
      const over = { region_name: region, file_system_names: ['data'] };
      await cloud.launchActive(over);
      await cloud.db.updateTable('hosts').set({ draining: 0 }).execute();
      await cloud.refreshAfter(1);
      await cloud.launchActive(over);
      const counts = await Promise.all(hosts.map(async (host) => (await host.list()).length));
      assert.deepEqual(counts, [1, 1, 0]);
    });

    test('an instance is placed where its image is, and boots the host’s default if it names none', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const region = 'us-east-1';
      const image = (name: string) => ({
        name,
        description: name,
        architecture: 'x86_64' as const,
      });
      const one = await cloud.addHost('one', region, {
        images: [image('debian-12'), image('ubuntu-24-04')],
        report: { vcpus: 2 },
      });
      const two = await cloud.addHost('two', region, { images: [image('alpine')] });
      const { body } = await cloud.call<Image[]>('GET', '/images');
      const families = body.data.filter((one) => one.region.name === region);
      assert.deepEqual(families.map(({ family }) => family).sort(), [
        'alpine',
        'debian-12',
        'ubuntu-24-04',
      ]);
      const chosen = await cloud.launchActive({
        region_name: region,
        image: { family: 'ubuntu-24-04' },
      });
      assert.equal(one.find(chosen)?.spec.image, 'ubuntu-24-04');
      const alpine = families.find(({ family }) => family === 'alpine');
      const byId = await cloud.launchActive({ region_name: region, image: { id: alpine?.id } });
      assert.equal(two.find(byId)?.spec.image, 'alpine');
      const any = await cloud.launchActive({ region_name: region });
      assert.equal(
        two.find(any)?.spec.image,
        'alpine',
        'the host with the most free capacity is chosen',
      );
      const missing = await cloud.call('POST', '/instance-operations/launch', {
        region_name: region,
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['laptop'],
        image: { family: 'gpu-base-24-04' },
      });
      assert.equal(missing.status, 404);
    });

    test('addresses are unique and from the range of the host', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 1 } } });
      const addressPool = { first: '10.9.0.1', last: '10.9.0.4', except: ['10.9.0.1'] };
      const report = { vcpus: 16, memoryGib: 64, addressPool };
      await cloud.addHost('one', 'us-east-1', { report });
      await cloud.addHost('two', 'us-east-2', { report });
      const ips = [];
      for (const region_name of ['us-east-1', 'us-east-1', 'us-east-1', 'us-east-2']) {
        const id = await cloud.launchActive({ region_name });
        ips.push((await cloud.instance(id)).ip);
      }
      assert.deepEqual(ips.slice(0, 3).sort(), ['10.9.0.2', '10.9.0.3', '10.9.0.4']);
      assert.match(ips[3] ?? '', /^10\.9\.0\.[234]$/);
      const full = await cloud.call('POST', '/instance-operations/launch', {
        region_name: 'us-east-1',
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['laptop'],
      });
      assert.match(full.body.error.code, /insufficient-capacity/);
    });
  });
}

test('an event of the driver is enough to see that a machine has stopped', async () => {
  const cloud = await startCloud('sqlite');
  const id = await cloud.launchActive();
  // While the clock stands still, the reconciler never polls.
  cloud.cloud.reconciler.start();
  const changed = new Promise((done) => {
    cloud.cloud.events.subscribe(cloud.accountId, ({ status }) => done(status));
  });
  cloud.driver.kill(id, 'It was switched off.');
  assert.equal(await changed, 'unhealthy');
});

test('a host that hangs does not hold up the work on other hosts', async () => {
  const cloud = await startCloud('sqlite', { instancesPerAccount: 1000 });
  const size = { vcpus: 128, memoryGib: 256 };
  const stuck = await cloud.addHost('stuck', 'us-east-1', { report: size });
  const release = Promise.withResolvers<void>();
  stuck.launch = () => release.promise;
  for (let count = 0; count < 100; count++) await cloud.launch({ region_name: 'us-east-1' });
  const id = await cloud.launch();
  cloud.cloud.reconciler.start();
  await until('the instance on the other host is active', async () => {
    cloud.clock.turn(300);
    return (await cloud.instance(id)).status === 'active';
  });
  release.resolve();
});

test('hosts of the configuration file follow the file, and may not have the name of a server’s own host', async () => {
  const filed = { name: 'filed', region: 'us-east-1', url: 'https://127.0.0.1:9', pool: 'fast' };
  const cloud = await startCloud('sqlite');
  const start = (hosts: FileHost[]) => ensureFileHosts(cloud.db, cloud.clock, hosts);
  const read = () =>
    cloud.db.selectFrom('hosts').selectAll().where('name', '=', 'filed').executeTakeFirstOrThrow();
  await start([filed]);
  const before = await read();
  await cloud.db.updateTable('hosts').set({ draining: 1 }).where('name', '=', 'filed').execute();
  await start([{ ...filed, url: 'https://127.0.0.2:9', default_image: 'lab' }]);
  const after = await read();
  const { id, url, pool, draining } = after;
  assert.deepEqual([id, url, pool, draining], [before.id, 'https://127.0.0.2:9', 'fast', 1]);
  assert.equal(parseExtras(after).default_image, 'lab');
  await start([]);
  assert.equal((await read()).id, id, 'a host that left the file is kept: it may have instances');
  await assert.rejects(start([{ ...filed, name: 'here' }]), /own host/);
});
