// Filesystems outlive machines, and can't be pulled away from under one.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { Filesystem } from '#cloud/schema.ts';
import { startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';
import { bothDatabases } from '#test/support/databases.ts';

const region = 'us-west-1';

const create = (cloud: TestCloud, name: string) =>
  cloud.call<Filesystem>('POST', '/filesystems', { name, region });

for (const database of bothDatabases) {
  describe(`filesystems on ${database}`, () => {
    test('the reconciler creates, measures and removes a filesystem', async () => {
      const cloud = await startCloud(database);
      const { id } = (await create(cloud, 'data')).body.data;
      await cloud.cloud.reconciler.settle();
      assert(cloud.driver.calls.includes(`createFilesystem ${id}`));
      const [listed] = (await cloud.call<Filesystem[]>('GET', '/file-systems')).body.data;
      assert.equal(listed?.bytes_used, 4096);
      const { status, body } = await cloud.call('DELETE', `/filesystems/${id}`);
      assert.equal(status, 200);
      assert.deepEqual(body.data, { deleted_ids: [id] });
      assert.deepEqual((await cloud.call('GET', '/file-systems')).body.data, []);
      await cloud.cloud.reconciler.settle();
      assert(cloud.driver.calls.includes(`deleteFilesystem ${id}`));
      assert.deepEqual(await cloud.db.selectFrom('filesystems').selectAll().execute(), []);
      const again = await cloud.call('DELETE', `/filesystems/${id}`);
      assert.equal(again.status, 404);
      assert.equal(again.body.error.message, 'Filesystem was not found.');
    });

    test('a name is taken once, even by fifty concurrent requests, and is free again after a delete', async () => {
      const cloud = await startCloud(database);
      const answers = await Promise.all(Array.from({ length: 50 }, () => create(cloud, 'data')));
      const made = answers.filter(({ status }) => status === 200);
      assert.equal(made.length, 1);
      const refused = answers.find(({ status }) => status !== 200);
      assert.equal(refused?.status, 400);
      assert.equal(refused?.body.error.code, 'global/duplicate');
      await cloud.call('DELETE', `/filesystems/${made[0]?.body.data.id}`);
      assert.equal((await create(cloud, 'data')).status, 200);
    });

    test('an account has at most 24 filesystems', async () => {
      const cloud = await startCloud(database, { filesystemsPerAccount: 2 });
      await create(cloud, 'one');
      await create(cloud, 'two');
      const { status, body } = await create(cloud, 'three');
      assert.equal(status, 400);
      assert.equal(body.error.code, 'global/quota-exceeded');
    });

    test('names with path tricks and unknown regions are refused', async () => {
      const cloud = await startCloud(database);
      for (const name of ['../etc', 'a/b', '', '1a', 'a.b', '-a', 'a'.repeat(61), 'a\u0000', 7]) {
        const { status, body } = await create(cloud, name as string);
        assert.equal(status, 400, String(name));
        assert.equal(body.error.code, 'global/invalid-parameters');
      }
      const { body } = await cloud.call('POST', '/filesystems', { name: 'a', region: 'moon-1' });
      assert.equal(body.error.message, 'Region moon-1 does not exist');
    });

    test("a filesystem in use can't be deleted until its instance is gone, not just terminating", async () => {
      const cloud = await startCloud(database);
      const { id } = (await create(cloud, 'data')).body.data;
      const instance = await cloud.launchActive({ file_system_names: ['data'] });
      const [listed] = (await cloud.call<Filesystem[]>('GET', '/file-systems')).body.data;
      assert.equal(listed?.is_in_use, true);
      const inUse = await cloud.call('DELETE', `/filesystems/${id}`);
      assert.equal(inUse.status, 400);
      assert.equal(inUse.body.error.code, 'filesystems/filesystem-in-use');
      await cloud.call('POST', '/instance-operations/terminate', { instance_ids: [instance] });
      assert.equal((await cloud.call('DELETE', `/filesystems/${id}`)).status, 400);
      await cloud.settle();
      assert.equal((await cloud.call('DELETE', `/filesystems/${id}`)).status, 200);
    });
  });
}
