// What a launch refuses, in the words clients match on, and that a refused launch leaves nothing behind.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { Filesystem, Ruleset } from '#cloud/schema.ts';
import { startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';
import { bothDatabases } from '#test/support/databases.ts';

const good = {
  region_name: 'us-west-1',
  instance_type_name: 'cpu_1x_general',
  ssh_key_names: ['laptop'],
};

const launch = (cloud: TestCloud, over: Record<string, unknown>) =>
  cloud.call<{ instance_ids: string[] }>('POST', '/instance-operations/launch', {
    ...good,
    ...over,
  });

interface Refusal {
  what: string;
  over: Record<string, unknown>;
  status?: number;
  code?: string;
  message: RegExp;
}

const id = '0'.repeat(32);
const refusals: Refusal[] = [
  {
    what: 'an unknown region',
    over: { region_name: 'us-nowhere-1' },
    message: /^Region us-nowhere-1 does not exist$/,
  },
  { what: 'two instances', over: { quantity: 2 }, message: /^Requested too many instances\.$/ },
  {
    what: 'no key',
    over: { ssh_key_names: [] },
    message: /at 'ssh_key_names': List should have at least 1 item/,
  },
  {
    what: 'two keys',
    over: { ssh_key_names: ['laptop', 'b'] },
    message: /at 'ssh_key_names': List should have at most 1 item/,
  },
  {
    what: 'no region',
    over: { region_name: undefined },
    message: /at 'region_name': Field required/,
  },
  {
    what: 'a name that is too long',
    over: { name: 'x'.repeat(65) },
    message: /at 'name': String should have at most 64 characters/,
  },
  { what: 'a name with a NUL', over: { name: 'a\u0000b' }, message: /at 'name'/ },
  { what: 'a host name with a path', over: { hostname: '../../etc' }, message: /at 'hostname'/ },
  {
    what: 'a mount point with a path trick',
    over: { file_system_mounts: [{ mount_point: '/home/../etc', file_system_id: id }] },
    message: /at 'file_system_mounts\[0\]\.mount_point'/,
  },
  {
    what: 'a mount point elsewhere',
    over: { file_system_mounts: [{ mount_point: '/etc', file_system_id: id }] },
    message: /mount_point/,
  },
  {
    what: 'a bad tag key',
    over: { tags: [{ key: 'Bad Key', value: 'x' }] },
    message: /at 'tags\[0\]\.key'/,
  },
  {
    what: 'a tag value that is too long',
    over: { tags: [{ key: 'ok', value: 'x'.repeat(129) }] },
    message: /at 'tags\[0\]\.value'/,
  },
  {
    what: 'user_data over 1 MB',
    over: { user_data: 'x'.repeat(1_048_577) },
    message: /at 'user_data'/,
  },
  {
    what: 'user_data over 1 MB in bytes',
    over: { user_data: 'é'.repeat(524_289) },
    message: /at 'user_data'/,
  },
  {
    what: 'a ruleset id that is none',
    over: { firewall_rulesets: [{ id: '../x' }] },
    message: /at 'firewall_rulesets\[0\]\.id': Input should be a valid UUID/,
  },
  {
    what: 'an unknown key',
    over: { ssh_key_names: ['nobody'] },
    status: 404,
    code: 'global/object-does-not-exist',
    message: /'nobody'/,
  },
  {
    what: 'an unknown type',
    over: { instance_type_name: 'gpu_9x_z' },
    status: 404,
    code: 'global/object-does-not-exist',
    message: /gpu_9x_z/,
  },
  {
    what: 'an unknown image',
    over: { image: { family: 'windows' } },
    status: 404,
    code: 'global/object-does-not-exist',
    message: /windows/,
  },
  {
    what: 'an unknown filesystem',
    over: { file_system_names: ['x'] },
    status: 404,
    code: 'global/object-does-not-exist',
    message:
      /^Filesystem with name 'x' does not exist in region 'us-west-1', or you do not have permission to access it\.$/,
  },
  {
    what: 'an unknown ruleset',
    over: { firewall_rulesets: [{ id }] },
    status: 404,
    code: 'global/object-does-not-exist',
    message: /^Firewall ruleset does not exist/,
  },
  {
    what: 'a type without capacity',
    over: { instance_type_name: 'gpu_1x_a10' },
    code: 'instance-operations/launch/insufficient-capacity',
    message: /^Not enough capacity to fulfill launch request\.$/,
  },
  {
    what: 'a region without capacity',
    over: { region_name: 'us-east-1' },
    code: 'instance-operations/launch/insufficient-capacity',
    message: /^Not enough capacity/,
  },
];

for (const database of bothDatabases) {
  describe(`launching on ${database}`, () => {
    test('bad input is refused with the contract’s messages and leaves nothing behind', async () => {
      const cloud = await startCloud(database);
      for (const { what, over, status = 400, code, message } of refusals) {
        const answer = await launch(cloud, over);
        assert.equal(answer.status, status, what);
        assert.equal(answer.body.error.code, code ?? 'global/invalid-parameters', what);
        assert.match(answer.body.error.message, message, what);
        if (code !== undefined) assert(answer.body.error.suggestion, what);
      }
      assert.deepEqual(await cloud.db.selectFrom('instances').selectAll().execute(), []);
      const events = await cloud.db
        .selectFrom('audit_events')
        .selectAll()
        .where('action', '=', 'instance.created')
        .execute();
      assert.deepEqual(events, []);
    });

    test('every launch option reaches the machine and is shown in the instance', async () => {
      const cloud = await startCloud(database);
      const { body: made } = await cloud.call<Filesystem>('POST', '/filesystems', {
        name: 'data-1',
        region: 'us-west-1',
      });
      const { body: other } = await cloud.call<Filesystem>('POST', '/filesystems', {
        name: 'other',
        region: 'us-west-1',
      });
      const { body: rules } = await cloud.call<Ruleset>('POST', '/firewall-rulesets', {
        name: 'web',
        region: 'us-west-1',
        rules: [
          { protocol: 'tcp', port_range: [80, 80], source_network: '10.0.0.1', description: '' },
        ],
      });
      const instanceId = await cloud.launchActive({
        name: '../../a name; with $(tricks)',
        hostname: 'box-1',
        file_system_names: ['data-1', 'other'],
        file_system_mounts: [{ mount_point: '/data//big/', file_system_id: made.data.id }],
        tags: [{ key: 'team:x', value: 'blue' }],
        firewall_rulesets: [{ id: rules.data.id }],
        image: { family: 'ubuntu-22-04' },
        user_data: '#cloud-config\n',
        quantity: 1,
        something_new: true,
      });
      const shown = await cloud.instance(instanceId);
      assert.equal(shown.name, '../../a name; with $(tricks)');
      assert.equal(shown.hostname, 'box-1');
      assert.deepEqual(shown.file_system_names, ['data-1', 'other']);
      assert.deepEqual(shown.file_system_mounts, [
        { mount_point: '/data//big/', file_system_id: made.data.id },
        { mount_point: '/lambda/nfs/other', file_system_id: other.data.id },
      ]);
      assert.deepEqual(shown.tags, [{ key: 'team:x', value: 'blue' }]);
      assert.deepEqual(shown.firewall_rulesets, [{ id: rules.data.id }]);
      assert(!JSON.stringify(shown).includes('cloud-config'), 'user_data is write-only');
      const spec = cloud.driver.find(instanceId)?.spec;
      assert.equal(spec?.hostname, 'box-1');
      assert.equal(spec?.userData, '#cloud-config\n');
      assert.equal(spec?.ip, shown.ip);
      assert.deepEqual(spec?.filesystems, [
        { id: made.data.id, mountPoint: '/data/big' },
        { id: other.data.id, mountPoint: '/lambda/nfs/other' },
      ]);
      assert.deepEqual(
        spec?.firewall.map(({ portRange }) => portRange),
        [[22, 22], null, [80, 80]],
      );
      assert.equal(spec?.firewall.at(-1)?.sourceNetwork, '10.0.0.1/32');
    });

    test('1 MB of user_data is accepted, however long its JSON encoding is', async () => {
      const cloud = await startCloud(database);
      for (const letter of ['x', '"', '\u0001']) {
        const user_data = letter.repeat(1_048_576);
        assert.equal((await launch(cloud, { user_data })).status, 200);
      }
    });

    test('null means not given', async () => {
      const cloud = await startCloud(database);
      const over = {
        name: null,
        file_system_names: null,
        user_data: null,
        tags: null,
        image: null,
      };
      assert.equal((await launch(cloud, over)).status, 200);
    });

    test('names of instances need not be unique', async () => {
      const cloud = await startCloud(database);
      for (let time = 0; time < 2; time++) {
        assert.equal((await launch(cloud, { name: 'twin' })).status, 200);
      }
    });

    test('two filesystems can’t share a mount point', async () => {
      const cloud = await startCloud(database);
      const region = 'us-west-1';
      const ids = [];
      for (const name of ['one', 'two']) {
        const { body } = await cloud.call<Filesystem>('POST', '/filesystems', { name, region });
        ids.push(body.data.id);
      }
      const [file_system_id = '', second = ''] = ids;
      const { status } = await launch(cloud, {
        file_system_mounts: [
          { mount_point: '/data/x', file_system_id },
          { mount_point: '/data//x/', file_system_id: second },
        ],
      });
      assert.equal(status, 400);
    });

    test('a filesystem is checked before capacity, and one in another region counts as missing', async () => {
      const cloud = await startCloud(database);
      await cloud.call('POST', '/filesystems', { name: 'far', region: 'us-east-1' });
      const over = { instance_type_name: 'gpu_1x_a10', file_system_names: ['far'] };
      const { body } = await launch(cloud, over);
      assert.equal(body.error.code, 'global/object-does-not-exist');
    });

    test("another account's keys, filesystems and instances do not exist", async () => {
      const cloud = await startCloud(database);
      const mine = await cloud.launchActive();
      await cloud.call('POST', '/filesystems', { name: 'mine', region: 'us-west-1' });
      const theirs = await cloud.stranger();
      const as = (method: string, path: string, body?: unknown) =>
        cloud.call(method, path, body, theirs);
      assert.equal((await as('POST', '/instance-operations/launch', good)).status, 404);
      assert.equal((await as('GET', `/instances/${mine}`)).status, 404);
      assert.equal((await as('POST', `/instances/${mine}`, { name: 'x' })).status, 404);
      for (const operation of ['restart', 'terminate', 'power-cycle']) {
        const path = `/instance-operations/${operation}`;
        assert.equal((await as('POST', path, { instance_ids: [mine] })).status, 404);
      }
      assert.deepEqual((await as('GET', '/instances')).body.data, []);
      assert.deepEqual((await as('GET', '/file-systems')).body.data, []);
      assert.equal((await cloud.instance(mine)).status, 'active');
    });
  });
}
