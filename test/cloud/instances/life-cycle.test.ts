// An instance from launch to the hour after its end, on both databases.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { Instance } from '#cloud/schema.ts';
import { startCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';

for (const database of databases) {
  describe(`an instance's life on ${database}`, () => {
    test('an instance boots without an address, then with one, and then is active', async () => {
      const { launch, instance, cloud, clock } = await startCloud(database);
      const id = await launch({ hostname: 'slow' });
      const seen = [];
      for (let turn = 0; turn < 12; turn++) {
        const { status, ip } = await instance(id);
        seen.push(`${status} ${ip === undefined ? 'without' : 'with'} ip`);
        await cloud.reconciler.settle();
        clock.turn(250);
      }
      assert.deepEqual(
        [...new Set(seen)],
        ['booting without ip', 'booting with ip', 'active with ip'],
      );
    });

    test('an instance whose machine is up at once is still seen booting with its address', async () => {
      const { launch, instance, cloud, clock, driver } = await startCloud(database);
      const id = await launch();
      await cloud.reconciler.settle();
      driver.revive(id);
      clock.turn(250);
      await cloud.reconciler.settle();
      const { status, ip } = await instance(id);
      assert.equal(status, 'booting');
      assert.match(ip ?? '', /^127\.77\.\d+\.\d+$/);
    });

    test('a restart keeps ip, host keys and disk, and says so in its actions', async () => {
      const { call, launchActive, instance, driver, settle } = await startCloud(database);
      const id = await launchActive();
      const before = await instance(id);
      const hostKey = driver.find(id)?.hostKey;
      const { status, body } = await call<{ restarted_instances: Instance[] }>(
        'POST',
        '/instance-operations/restart',
        { instance_ids: [id] },
      );
      assert.equal(status, 200);
      const [echoed] = body.data.restarted_instances;
      assert.equal(echoed?.id, id);
      assert.equal(echoed?.status, 'booting');
      assert.equal((await instance(id)).status, 'booting');
      assert.equal(echoed?.actions.restart.reason_code, 'vm-action-in-progress');
      const again = await call('POST', '/instance-operations/restart', { instance_ids: [id] });
      assert.equal(again.status, 409);
      assert.equal(again.body.error.code, 'global/conflict');
      await settle();
      assert.deepEqual(await instance(id), before);
      assert.equal(driver.find(id)?.hostKey, hostKey);
      assert.equal(driver.find(id)?.boots, 2);
    });

    test('a power cycle returns the instance, which becomes active again', async () => {
      const { call, launchActive, instance, driver, settle } = await startCloud(database);
      const id = await launchActive();
      const { body } = await call<{ power_cycled_instances: Instance[] }>(
        'POST',
        '/instance-operations/power-cycle',
        { instance_ids: [id] },
      );
      assert.equal(body.data.power_cycled_instances[0]?.id, id);
      await settle();
      assert.equal((await instance(id)).status, 'active');
      assert.equal(driver.find(id)?.boots, 2);
    });

    test('terminated instances leave the list and stay readable for an hour', async () => {
      const { call, launchActive, instance, driver, settle, clock } = await startCloud(database);
      const id = await launchActive({ hostname: 'clings' });
      const { body } = await call<{ terminated_instances: Instance[] }>(
        'POST',
        '/instance-operations/terminate',
        { instance_ids: [id] },
      );
      assert.equal(body.data.terminated_instances[0]?.status, 'terminating');
      const listed = (await call<Instance[]>('GET', '/instances')).body.data;
      assert.equal(listed[0]?.status, 'terminating');
      assert.equal(listed[0]?.actions.terminate.reason_code, 'vm-is-terminating');
      await settle();
      assert.deepEqual((await call('GET', '/instances')).body.data, []);
      assert.equal((await instance(id)).status, 'terminated');
      assert.equal(driver.find(id), undefined);
      clock.turn(3_600_000);
      assert.equal((await call('GET', `/instances/${id}`)).status, 404);
      const late = await call('POST', '/instance-operations/terminate', { instance_ids: [id] });
      assert.equal(late.status, 404);
    });

    test('an instance can be terminated while it boots, and before its machine exists', async () => {
      const { call, launch, instance, driver, settle, cloud } = await startCloud(database);
      const early = await launch();
      await call('POST', '/instance-operations/terminate', { instance_ids: [early] });
      const booting = await launch({ hostname: 'slow' });
      await cloud.reconciler.settle();
      await call('POST', '/instance-operations/terminate', { instance_ids: [booting] });
      await settle();
      for (const id of [early, booting]) assert.equal((await instance(id)).status, 'terminated');
      assert.deepEqual(await driver.list(), []);
      assert(!driver.calls.includes(`launch ${early}`));
    });

    test('an instance whose machine stops is unhealthy with a reason, and active once it is back', async () => {
      const { launchActive, instance, driver, cloud, accountId, db } = await startCloud(database);
      const id = await launchActive();
      driver.kill(id, 'The kernel killed its first process.');
      await cloud.reconciler.observeSome();
      assert.equal((await instance(id)).status, 'unhealthy');
      const [detail] = (await cloud.details.list(accountId, { limit: 1 })).data;
      assert.equal(detail?.status_reason, 'The kernel killed its first process.');
      driver.revive(id);
      await cloud.reconciler.observeSome();
      assert.equal((await instance(id)).status, 'active');
      const { data } = await cloud.details.list(accountId, { limit: 1 });
      assert.equal(data[0]?.status_reason, null);
      const events = await db
        .selectFrom('audit_events')
        .select(['action', 'account_id', 'details'])
        .where('resource_id', '=', id)
        .where('action', '!=', 'instance.created')
        .execute();
      const found = events.map(({ action, details }) => [action, JSON.parse(details).reason]);
      assert.deepEqual(found.sort(), [
        ['instance.became_unhealthy', 'The kernel killed its first process.'],
        ['instance.recovered', undefined],
      ]);
      assert.ok(events.every(({ account_id }) => account_id === accountId));
    });

    test('an instance whose machine stops at boot is unhealthy, and a restart brings it up', async () => {
      const { call, launch, instance, settle } = await startCloud(database);
      const id = await launch({ hostname: 'dies-after-launch' });
      await settle();
      assert.equal((await instance(id)).status, 'unhealthy');
      await call('POST', '/instance-operations/restart', { instance_ids: [id] });
      await settle();
      assert.equal((await instance(id)).status, 'active');
    });

    test('an instance whose machine vanished is unhealthy', async () => {
      const { launchActive, instance, driver, cloud } = await startCloud(database);
      const id = await launchActive();
      await driver.terminate(id);
      await cloud.reconciler.observeSome();
      assert.equal((await instance(id)).status, 'unhealthy');
    });

    test('a failed launch is retried with growing delays', async () => {
      const { launch, instance, driver, db, cloud, settle, clock } = await startCloud(database);
      const id = await launch({ hostname: 'fails-twice' });
      await cloud.reconciler.settle();
      const first = await db.selectFrom('instances').selectAll().executeTakeFirstOrThrow();
      assert.equal(first.attempts, 1);
      assert.equal((first.due_at ?? 0) - clock.now(), 500);
      clock.turn(500);
      await cloud.reconciler.settle();
      const second = await db.selectFrom('instances').selectAll().executeTakeFirstOrThrow();
      assert.equal((second.due_at ?? 0) - clock.now(), 1000);
      await settle();
      assert.equal((await instance(id)).status, 'active');
      assert.equal(driver.calls.filter((call) => call === `launch ${id}`).length, 3);
    });

    test('a copy to the host is told, and its time is none of the boot', async () => {
      const { launch, db, cloud, driver, settle, clock } = await startCloud(database);
      const id = await launch();
      await db.updateTable('instances').set({ weights: '/models/small' }).execute();
      for (const percent of [0, 20, 40, 60, 80]) {
        await cloud.reconciler.settle();
        const row = await db.selectFrom('instances').selectAll().executeTakeFirstOrThrow();
        const told = `copying weights to the scripted host, ${percent} %`;
        assert.deepEqual(
          [row.status, row.status_reason, row.asked_at, row.attempts],
          ['booting', told, null, 0],
        );
        clock.turn(10 * 60_000);
      }
      await settle();
      const row = await db.selectFrom('instances').selectAll().executeTakeFirstOrThrow();
      assert.deepEqual([row.status, row.status_reason], ['active', null]);
      assert.equal(driver.calls.filter((call) => call === `launch ${id}`).length, 1);
    });

    test('an instance whose launch can never succeed is unhealthy with the driver’s reason', async () => {
      const { launch, instance, settle, cloud, accountId } = await startCloud(database);
      const id = await launch({ hostname: 'impossible' });
      await settle();
      assert.equal((await instance(id)).status, 'unhealthy');
      const [detail] = (await cloud.details.list(accountId, { limit: 1 })).data;
      assert.match(detail?.status_reason ?? '', /never run this machine/);
    });

    test('an instance whose machine misses the boot timeout is unhealthy, and active if it comes up later', async () => {
      const { launch, instance, driver, settle, cloud, clock } = await startCloud(database);
      const id = await launch();
      const real = driver.launch;
      driver.launch = async () => {
        throw new Error('The host is full.');
      };
      for (let minute = 0; minute < 17; minute++) {
        await cloud.reconciler.settle();
        clock.turn(60_000);
      }
      assert.equal((await instance(id)).status, 'unhealthy');
      driver.launch = real;
      await settle();
      assert.equal((await instance(id)).status, 'active');
    });

    test('a restart that keeps failing is given up with the reason', async () => {
      const { call, launchActive, instance, driver, settle, cloud, accountId } =
        await startCloud(database);
      const id = await launchActive();
      driver.restart = async () => {
        throw new Error('The switch is stuck.');
      };
      await call('POST', '/instance-operations/restart', { instance_ids: [id] });
      await settle();
      const { status, actions } = await instance(id);
      assert.equal(status, 'unhealthy');
      assert.equal(actions.restart.available, true);
      const [detail] = (await cloud.details.list(accountId, { limit: 1 })).data;
      assert.equal(detail?.status_reason, 'The switch is stuck.');
    });

    test('a launch that the driver forgot is repeated', async () => {
      const { launch, instance, settle } = await startCloud(database);
      const id = await launch({ hostname: 'forgets' });
      await settle();
      assert.equal((await instance(id)).status, 'active');
    });

    test('changes are announced to the account that owns the instance, and to no other', async () => {
      const { cloud, accountId, launchActive } = await startCloud(database);
      const heard: string[] = [];
      const end = cloud.events.subscribe(accountId, ({ status }) => heard.push(status));
      cloud.events.subscribe('somebody else', () => assert.fail('not theirs'));
      await launchActive();
      end();
      await launchActive();
      assert.deepEqual(heard, ['booting', 'booting', 'active']);
    });
  });
}
