// Several servers on one database, each with its own host: none touches the machines of another, each lists all
// instances, and a server that is gone is noticed.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { createScriptedDriver } from '#cloud/drivers/scripted.ts';
import { startCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';

for (const database of databases) {
  describe(`servers with hosts of their own, on ${database}`, () => {
    test('each server creates, observes and terminates only the machines of its own host', async () => {
      const one = await startCloud(database, { driver: { report: { vcpus: 4, memoryGib: 16 } } });
      const driver = createScriptedDriver({ report: { vcpus: 4, memoryGib: 16 } });
      const other = await one.another({ id: 'b'.repeat(32), driver });
      await one.refreshAfter(1);
      assert.deepEqual(
        one.cloud.hosts.all().map(({ row }) => row.name),
        ['here', 'here-2'],
      );
      const ids = [];
      for (let count = 0; count < 8; count++) ids.push(await one.launch());
      const work = async () => {
        for (let turn = 0; turn < 6; turn++) {
          await Promise.all([one.cloud.reconciler.settle(), other.reconciler.settle()]);
          one.clock.turn(500);
        }
      };
      await work();
      const [mine, theirs] = [await one.driver.list(), await driver.list()];
      assert.equal(mine.length, 4, 'launches are spread over both hosts');
      assert.equal(theirs.length, 4);
      assert.deepEqual([...mine, ...theirs].sort(), ids.sort());
      const addresses = await one.db.selectFrom('instances').select('address').execute();
      assert.equal(new Set(addresses.map(({ address }) => address)).size, 8);

      for (let look = 0; look < 3; look++) {
        await Promise.all([one.cloud.reconciler.observeSome(), other.reconciler.observeSome()]);
        await Promise.all([one.cloud.orphans.sweep(), other.orphans.sweep()]);
      }
      assert.equal(
        (await one.driver.list()).length,
        4,
        'a machine of the other server is not an orphan',
      );
      for (const id of ids) assert.equal((await one.instance(id)).status, 'active');

      await one.call('POST', '/instance-operations/terminate', { instance_ids: ids });
      await work();
      for (const id of ids) assert.equal((await one.instance(id)).status, 'terminated');
      for (const [own, ended] of [
        [mine, one.driver],
        [theirs, driver],
      ] as const) {
        const touched = new Set(ended.calls.map((call) => call.split(' ')[1]));
        assert.deepEqual([...touched].sort(), [...own].sort());
      }
    });

    test('the instances of a server that is gone are unhealthy until it returns', async () => {
      const one = await startCloud(database);
      const driver = createScriptedDriver();
      const own = { id: 'b'.repeat(32), driver };
      const other = await one.another(own);
      const rows = one.db.updateTable('hosts').set({ draining: 1 }).where('name', '=', 'here');
      await rows.execute();
      await one.refreshAfter(1);
      const id = await one.launch();
      for (let turn = 0; turn < 4; turn++) {
        await other.reconciler.settle();
        one.clock.turn(500);
      }
      assert.equal((await one.instance(id)).status, 'active');
      // The other server is alive as long as it writes heartbeats.
      for (let beat = 0; beat < 10; beat++) {
        one.clock.turn(5_000);
        await other.hosts.refresh();
        await one.cloud.hosts.refresh();
      }
      assert.equal((await one.instance(id)).status, 'active');
      await other.reconciler.stop();
      await one.refreshAfter(60_000);
      assert.equal((await one.instance(id)).status, 'unhealthy');
      const { status_reason } = await one.db
        .selectFrom('instances')
        .select('status_reason')
        .executeTakeFirstOrThrow();
      assert.match(
        status_reason ?? '',
        /^Host here-2 has not answered since .*server is not running\.$/,
      );
      const again = await one.another(own);
      await again.reconciler.settle();
      assert.equal((await one.instance(id)).status, 'active');
      assert.deepEqual(
        driver.calls.filter((call) => call.startsWith('launch')),
        [`launch ${id}`],
      );
    });
  });
}
