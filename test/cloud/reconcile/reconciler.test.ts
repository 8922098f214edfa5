// The reconcilers of several processes on one database: how they share work, what happens when one dies, and
// what an idle one costs.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { createClaims } from '#cloud/reconcile/claims.ts';
import { createOrphanMachines } from '#cloud/reconcile/orphan-machines.ts';
import { startCloud } from '#test/support/cloud/cloud.ts';
import { bothDatabases } from '#test/support/databases.ts';

for (const database of bothDatabases) {
  describe(`the reconciler on ${database}`, () => {
    test('concurrent processes share the work: each machine is launched once', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 64 } } });
      const others = await Promise.all([cloud.another(), cloud.another()]);
      const ids = [];
      for (let count = 0; count < 20; count++) ids.push(await cloud.launch());
      const reconcilers = [cloud.cloud, ...others].map(({ reconciler }) => reconciler);
      for (let turn = 0; turn < 6; turn++) {
        await Promise.all(reconcilers.map((reconciler) => reconciler.settle()));
        cloud.clock.turn(500);
      }
      for (const id of ids) {
        assert.equal((await cloud.instance(id)).status, 'active');
        assert.equal(cloud.driver.calls.filter((call) => call === `launch ${id}`).length, 1);
      }
    });

    test('only one process can claim a row, and the claim expires if it is not renewed', async () => {
      const { db, clock, launch, cloud } = await startCloud(database);
      const hostIds = cloud.hosts.reachable();
      const id = await launch();
      const claims = createClaims(db, clock, { leaseMs: 10_000 });
      const taken = await Promise.all(
        Array.from({ length: 8 }, () => claims.take('instances', 10, hostIds)),
      );
      assert.equal(taken.flat().length, 1);
      clock.turn(9_999);
      assert.deepEqual(await claims.take('instances', 10, hostIds), []);
      clock.turn(1);
      const [claim] = await claims.take('instances', 10, hostIds);
      assert.equal(claim?.id, id);
    });

    test('work that a dead process had claimed is finished by another process', async () => {
      const cloud = await startCloud(database);
      const id = await cloud.launch();
      const hostIds = cloud.cloud.hosts.reachable();
      await createClaims(cloud.db, cloud.clock, { leaseMs: 10_000 }).take('instances', 10, hostIds);
      await cloud.cloud.reconciler.settle();
      assert.deepEqual(cloud.driver.calls, []);
      cloud.clock.turn(10_000);
      await cloud.settle();
      assert.equal((await cloud.instance(id)).status, 'active');
    });

    test('a single server releases all claims at its start', async () => {
      const cloud = await startCloud(database, { singleServer: true });
      const id = await cloud.launch();
      const hostIds = cloud.cloud.hosts.reachable();
      await createClaims(cloud.db, cloud.clock, { leaseMs: 10_000 }).take('instances', 10, hostIds);
      const { reconciler } = await cloud.another();
      await reconciler.settle();
      assert.deepEqual(cloud.driver.calls, [`launch ${id}`]);
    });

    test('a command that arrives while the driver works is not overwritten', async () => {
      const cloud = await startCloud(database);
      const id = await cloud.launch();
      const { driver } = cloud;
      const launch = driver.launch;
      driver.launch = async (spec) => {
        await launch(spec);
        await cloud.call('POST', '/instance-operations/terminate', { instance_ids: [id] });
      };
      await cloud.settle();
      assert.equal((await cloud.instance(id)).status, 'terminated');
      assert.deepEqual(await driver.list(), []);
    });

    test('the cost of observing settled machines does not depend on their number', async () => {
      const cloud = await startCloud(database, {
        driver: { report: { vcpus: 128, memoryGib: 256 } },
      });
      for (let count = 0; count < 70; count++) await cloud.launch();
      await cloud.settle();
      const inspected: string[] = [];
      const inspect = cloud.driver.inspect;
      cloud.driver.inspect = (id) => {
        inspected.push(id);
        return inspect(id);
      };
      await cloud.cloud.reconciler.settle();
      assert.equal(inspected.length, 0, 'a settled row is not due');
      await cloud.cloud.reconciler.observeSome();
      assert.equal(inspected.length, 32);
      await cloud.cloud.reconciler.observeSome();
      await cloud.cloud.reconciler.observeSome();
      assert.equal(new Set(inspected).size, 70, 'each is observed in the end');
    });

    test('an orphan is logged by the first sweep and removed by the second', async () => {
      const cloud = await startCloud(database);
      const known = await cloud.launchActive();
      const lines: string[] = [];
      const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
      const orphans = createOrphanMachines(cloud.db, cloud.cloud.hosts, log);
      cloud.driver.plant('e'.repeat(32));
      await orphans.sweep();
      assert.equal((await cloud.driver.list()).length, 2);
      assert.match(lines.join(''), /belongs to no instance/);
      await orphans.sweep();
      assert.deepEqual(await cloud.driver.list(), [known]);
    });

    test('an orphan is removed although unused networks cannot be', async () => {
      const cloud = await startCloud(database);
      const orphans = createOrphanMachines(cloud.db, cloud.cloud.hosts, pino({ level: 'silent' }));
      cloud.driver.sweepNetworks = () => Promise.reject(new Error('The daemon is broken.'));
      cloud.driver.plant('e'.repeat(32));
      for (const _ of ['seen', 'removed']) await orphans.sweep();
      assert.deepEqual(await cloud.driver.list(), []);
    });

    test('after a restore an orphan is kept until an operator allows its removal', async () => {
      const cloud = await startCloud(database);
      const log = pino({ level: 'silent' });
      let keeps = true;
      const orphans = createOrphanMachines(cloud.db, cloud.cloud.hosts, log, () => keeps);
      cloud.driver.plant('e'.repeat(32));
      for (let round = 0; round < 3; round++) await orphans.sweep();
      assert.deepEqual(await cloud.driver.list(), ['e'.repeat(32)]);
      keeps = false;
      await orphans.sweep();
      assert.deepEqual(await cloud.driver.list(), []);
    });

    test('a machine whose instance is terminated is an orphan too', async () => {
      const cloud = await startCloud(database);
      const id = await cloud.launchActive();
      await cloud.call('POST', '/instance-operations/terminate', { instance_ids: [id] });
      await cloud.settle();
      cloud.driver.plant(id);
      await cloud.cloud.orphans.sweep();
      await cloud.cloud.orphans.sweep();
      assert.deepEqual(await cloud.driver.list(), []);
    });
  });
}
