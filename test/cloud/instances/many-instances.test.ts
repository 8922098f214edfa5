// Lists of thousands of instances, which take more than one query, are complete and in order.

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

/** Inserts copies of a launched instance, each with a filesystem and two rulesets. */
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
  const { status, body } = await call<Instance[]>('GET', '/instances');
  assert.equal(status, 200);
  return body.data;
}

for (const database of databases) {
  describe(`many instances on ${database}`, () => {
    test('each instance is listed with its own attachments, in a stable order', async () => {
      const cloud = await startCloud(database);
      const template = await launchOne(cloud);
      await addCopies(cloud, template, 0, 1003);
      const instances = (await list(cloud)).slice(1);
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
