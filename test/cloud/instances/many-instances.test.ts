// Lists of thousands of instances: whole, in order, and in time that grows with their number alone.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { Instance } from '#cloud/schema.ts';
import type { InstanceRow } from '#db/cloud-rows.ts';
import { startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';

const toId = (kind: string, index: number) => `${kind}${index.toString(16).padStart(31, '0')}`;

async function launchOne({ db, launch }: TestCloud): Promise<InstanceRow> {
  const one = await launch();
  return db.selectFrom('instances').selectAll().where('id', '=', one).executeTakeFirstOrThrow();
}

/** Copies of one that was launched, each with a filesystem and two rulesets. */
async function addCopies({ db }: TestCloud, template: InstanceRow, from: number, to: number) {
  const toCopy = (index: number) => ({
    ...template,
    id: toId('a', index),
    address: `10.0.${index >> 8}.${index & 255}`,
    launched_at: template.launched_at + 1,
    due_at: null,
  });
  for (let first = from; first < to; first += 500) {
    const indexes = Array.from({ length: Math.min(500, to - first) }, (_, n) => first + n);
    await db.insertInto('instances').values(indexes.map(toCopy)).execute();
    const filesystems = indexes.map((index) => ({
      instance_id: toId('a', index),
      filesystem_id: toId('f', index),
      name: `f${index}`,
      mount_point: '/data',
    }));
    await db.insertInto('instance_filesystems').values(filesystems).execute();
    const rulesets = ['e', 'd'].flatMap((kind) =>
      indexes.map((index) => ({ instance_id: toId('a', index), ruleset_id: toId(kind, index) })),
    );
    await db.insertInto('instance_rulesets').values(rulesets).execute();
  }
}

async function list({ call }: TestCloud) {
  const started = performance.now();
  const { status, body } = await call<Instance[]>('GET', '/instances');
  assert.equal(status, 200);
  return { instances: body.data, ms: performance.now() - started };
}

async function fastest(cloud: TestCloud) {
  const times = [];
  for (let turn = 0; turn < 3; turn++) times.push((await list(cloud)).ms);
  return Math.min(...times);
}

for (const database of databases) {
  describe(`many instances on ${database}`, () => {
    test('five times as many take no more than about five times as long', async () => {
      const cloud = await startCloud(database);
      const template = await launchOne(cloud);
      await addCopies(cloud, template, 0, 1000);
      const few = await fastest(cloud);
      await addCopies(cloud, template, 1000, 5000);
      const many = await fastest(cloud);
      assert(many < few * 12, `${few} ms for 1,000, ${many} ms for 5,000`);
    });

    test('each has what belongs to it, in an order that stays', async () => {
      const cloud = await startCloud(database);
      const template = await launchOne(cloud);
      await addCopies(cloud, template, 0, 1003);
      const instances = (await list(cloud)).instances.slice(1);
      assert.equal(instances.length, 1003);
      for (const [index, instance] of instances.entries()) {
        assert.equal(instance.id, toId('a', index));
        assert.deepEqual(instance.file_system_names, [`f${index}`]);
        const rulesets = [{ id: toId('d', index) }, { id: toId('e', index) }];
        assert.deepEqual(instance.firewall_rulesets, rulesets);
      }
    });
  });
}
