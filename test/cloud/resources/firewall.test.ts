// Inbound rules: the account's own and rulesets, and that changes reach running machines.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { Kysely } from 'kysely';
import type { FirewallRule, GlobalRuleset, Ruleset } from '#cloud/schema.ts';
import { up as connectSiblings } from '#db/migrations/0014-private-network.ts';
import { startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';

const web: FirewallRule = {
  protocol: 'tcp',
  port_range: [443, 443],
  source_network: '0.0.0.0/0',
  description: 'web',
};

const put = (cloud: TestCloud, rules: unknown[]) =>
  cloud.call<FirewallRule[]>('PUT', '/firewall-rules', { data: rules });

const createRuleset = (cloud: TestCloud, region = 'us-west-1') =>
  cloud.call<Ruleset>('POST', '/firewall-rulesets', { name: 'web', region, rules: [web] });

for (const database of databases) {
  describe(`the firewall on ${database}`, () => {
    test('a new account allows ssh and ping', async () => {
      const { call } = await startCloud(database);
      const { data } = (await call<FirewallRule[]>('GET', '/firewall-rules')).body;
      assert.deepEqual(
        data.map(({ protocol, port_range }) => [protocol, port_range]),
        [
          ['tcp', [22, 22]],
          ['icmp', undefined],
        ],
      );
      assert.equal('port_range' in (data[1] as object), false);
    });

    test('PUT replaces all rules, and the global ruleset has the same ones', async () => {
      const cloud = await startCloud(database);
      const icmp = { protocol: 'icmp', source_network: '10.1.2.3', description: '' };
      const { status, body } = await put(cloud, [{ ...web, extra: 1 }, icmp]);
      assert.equal(status, 200);
      assert.deepEqual(body.data, [web, icmp]);
      const global = await cloud.call<GlobalRuleset>('GET', '/firewall-rulesets/global');
      assert.deepEqual(global.body.data, {
        id: 'global',
        name: 'Global Firewall Rules',
        rules: [web, icmp],
      });
      await cloud.call('PATCH', '/firewall-rulesets/global', { rules: [web] });
      assert.deepEqual((await cloud.call('GET', '/firewall-rules')).body.data, [web]);
    });

    test('invalid rules are refused, and the old ones stay', async () => {
      const cloud = await startCloud(database);
      await put(cloud, [web]);
      const bad = [
        { ...web, protocol: 'gre' },
        { ...web, port_range: [0, 10] },
        { ...web, port_range: [10, 9] },
        { ...web, port_range: [1] },
        { ...web, port_range: undefined },
        { ...web, protocol: 'icmp' },
        { ...web, source_network: '300.0.0.1' },
        { ...web, source_network: '10.0.0.0/33' },
        { ...web, source_network: '::/0' },
        { ...web, source_network: '10.0.0.0/8; drop' },
        { ...web, description: 'x'.repeat(129) },
        { ...web, description: undefined },
      ];
      for (const rule of bad) {
        const { status, body } = await put(cloud, [rule]);
        assert.equal(status, 400, JSON.stringify(rule));
        assert.equal(body.error.code, 'global/invalid-parameters');
      }
      assert.equal((await put(cloud, Array(21).fill(web))).status, 400);
      assert.equal((await cloud.call('PUT', '/firewall-rules', [web])).status, 400);
      assert.deepEqual((await cloud.call('GET', '/firewall-rules')).body.data, [web]);
      assert.equal((await put(cloud, Array(20).fill(web))).status, 200);
    });

    test('a refusal names the rule by its path in the request', async () => {
      const cloud = await startCloud(database);
      const rules = [web, { ...web, port_range: [10, 9] }];
      const old = await put(cloud, rules);
      assert.match(old.body.error.message, /^Error in request body at 'data\[1\]\.port_range': /);
      const changed = await cloud.call('PATCH', '/firewall-rulesets/global', { rules });
      assert.match(changed.body.error.message, /at 'rules\[1\]\.port_range': /);
    });

    test('changed rules reach running and booting machines', async () => {
      const cloud = await startCloud(database);
      const { id } = (await createRuleset(cloud)).body.data;
      const running = await cloud.launchActive({ firewall_rulesets: [{ id }] });
      const booting = await cloud.launch({ hostname: 'slow' });
      await cloud.cloud.reconciler.settle();
      await put(cloud, []);
      await cloud.call('PATCH', `/firewall-rulesets/${id}`, {
        rules: [{ ...web, port_range: [80, 81] }],
      });
      await cloud.settle();
      assert.deepEqual(cloud.driver.find(running)?.spec.firewall, [
        { protocol: 'tcp', portRange: [80, 81], sourceNetwork: '0.0.0.0/0' },
      ]);
      assert.deepEqual(cloud.driver.find(booting)?.spec.firewall, []);
      assert.equal((await cloud.instance(booting)).status, 'active');
    });

    test('rules that changed while a machine was down are applied once it is back', async () => {
      const cloud = await startCloud(database);
      const id = await cloud.launchActive();
      cloud.driver.kill(id, 'It fell.');
      await cloud.cloud.reconciler.observeSome();
      await put(cloud, []);
      await cloud.settle();
      assert.notDeepEqual(cloud.driver.find(id)?.spec.firewall, []);
      cloud.driver.revive(id);
      await cloud.cloud.reconciler.observeSome();
      await cloud.settle();
      assert.deepEqual(cloud.driver.find(id)?.spec.firewall, []);
    });

    test('machines of an earlier version learn their account with their rules', async () => {
      const cloud = await startCloud(database);
      const id = await cloud.launchActive();
      const { spec } = cloud.driver.find(id)!;
      assert.notEqual(spec.account, undefined);
      const { account: _, ...former } = spec;
      await cloud.driver.setFirewall({ ...former, account: undefined });
      await connectSiblings(cloud.db as unknown as Kysely<unknown>);
      await cloud.settle();
      assert.equal(cloud.driver.find(id)?.spec.account, spec.account);
    });

    test('a ruleset in use can’t be deleted, and the refusal names its instances', async () => {
      const cloud = await startCloud(database);
      const made = (await createRuleset(cloud)).body.data;
      assert.deepEqual(Object.keys(made).toSorted(), [
        'created',
        'id',
        'instance_ids',
        'name',
        'region',
        'rules',
      ]);
      const instance = await cloud.launchActive({ firewall_rulesets: [{ id: made.id }] });
      const path = `/firewall-rulesets/${made.id}`;
      assert.deepEqual((await cloud.call<Ruleset>('GET', path)).body.data.instance_ids, [instance]);
      const refused = await cloud.call('DELETE', path);
      assert.equal(refused.status, 400);
      assert.equal(refused.body.error.code, 'firewall-rulesets/firewall-ruleset-in-use');
      await cloud.call('POST', '/instance-operations/terminate', { instance_ids: [instance] });
      await cloud.settle();
      assert.deepEqual((await cloud.call('DELETE', path)).body.data, {});
      const gone = await cloud.call('GET', path);
      assert.equal(gone.status, 404);
      assert.equal(
        gone.body.error.message,
        'Firewall ruleset does not exist or you do not have permission to access it.',
      );
    });

    test('a ruleset of another region is refused at launch, and the quota of rulesets holds', async () => {
      const cloud = await startCloud(database, { rulesetsPerAccount: 1 });
      const { id } = (await createRuleset(cloud, 'us-east-1')).body.data;
      const { status } = await cloud.call('POST', '/instance-operations/launch', {
        region_name: 'us-west-1',
        instance_type_name: 'cpu_1x_general',
        ssh_key_names: ['laptop'],
        firewall_rulesets: [{ id }],
      });
      assert.equal(status, 400);
      assert.equal((await createRuleset(cloud)).body.error.code, 'global/quota-exceeded');
    });

    test('concurrent rules, commands and reconciliation do not disturb each other', async () => {
      const cloud = await startCloud(database);
      const ids: string[] = [];
      for (let count = 0; count < 6; count++) ids.push(await cloud.launch());
      await cloud.settle();
      for (let round = 0; round < 5; round++) {
        const answers = await Promise.all([
          put(cloud, [web]),
          cloud.call('POST', '/instance-operations/terminate', { instance_ids: [ids[round]] }),
          put(cloud, []),
          cloud.call('POST', '/instance-operations/restart', { instance_ids: [ids[5]] }),
          cloud.call('POST', '/instance-operations/restart', {
            instance_ids: ids.slice(round + 1).toReversed(),
          }),
          cloud.cloud.reconciler.settle().then(() => ({ status: 200 })),
        ]);
        for (const { status } of answers) assert([200, 409].includes(status), `${status}`);
        await cloud.settle();
      }
      assert.equal((await cloud.instance(ids[5] as string)).status, 'active');
    });

    test('in us-south-1 rules have no effect', async () => {
      const cloud = await startCloud(database, { region: 'us-south-1' });
      await put(cloud, []);
      const id = await cloud.launchActive({ region_name: 'us-south-1' });
      assert.deepEqual(cloud.driver.find(id)?.spec.firewall, [
        { protocol: 'all', portRange: null, sourceNetwork: '0.0.0.0/0' },
      ]);
    });
  });
}
