// Lists of thousands of instances are complete and in order, and take few queries.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { KyselyPlugin } from 'kysely';
import { createAudit } from '#accounts/audit/audit.ts';
import { createInstanceEvents } from '#cloud/instances/instance-events.ts';
import { createInstances } from '#cloud/instances/instances.ts';
import type { Instance } from '#cloud/schema.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';
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

/** Lists the instances of the account and counts the queries. */
async function countQueries({ db, clock, accountId }: TestCloud) {
  let queries = 0;
  const counter: KyselyPlugin = {
    transformQuery({ node }) {
      queries++;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const audit = createAudit(clock);
  const parts = { audit, events: createInstanceEvents(), nudge() {} };
  const listed = await createInstances(db.withPlugin(counter), clock, parts).list(accountId);
  return { listed: listed.length, queries };
}

for (const database of databases) {
  describe(`many instances on ${database}`, () => {
    test('a list takes two queries per thousand instances, and one for their rows', async () => {
      const cloud = await startCloud(database);
      const template = await launchOne(cloud);
      await addCopies(cloud, template, 0, 999);
      assert.deepEqual(await countQueries(cloud), { listed: 1000, queries: 3 });
      await addCopies(cloud, template, 999, 4999);
      assert.deepEqual(await countQueries(cloud), { listed: 5000, queries: 11 });
    });

    test('each instance is listed with its own filesystems and rulesets, in a stable order', async () => {
      const cloud = await startCloud(database);
      const template = await launchOne(cloud);
      await addCopies(cloud, template, 0, 1003);
      const { body } = await cloud.call<Instance[]>('GET', '/instances');
      const instances = body.data.slice(1);
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
