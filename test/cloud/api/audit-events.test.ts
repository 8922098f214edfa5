// Every change leaves an audit event in the contract's form, and the log is read in pages.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { AuditEvent, Filesystem, Ruleset } from '#cloud/schema.ts';
import { startCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';

// A time without an offset must not be taken for one of the server's place.
process.env.TZ = 'Asia/Tokyo';

for (const database of databases) {
  describe(`audit events on ${database}`, () => {
    test('every change of a cloud resource is logged with the resources it touched', async () => {
      const { call, launchActive, settle } = await startCloud(database);
      const region = 'us-west-1';
      const id = await launchActive();
      await call('POST', `/instances/${id}`, { name: 'x' });
      await call('POST', '/instance-operations/restart', { instance_ids: [id] });
      await settle();
      await call('POST', '/instance-operations/power-cycle', { instance_ids: [id] });
      await call('POST', '/instance-operations/terminate', { instance_ids: [id] });
      const { body: filesystem } = await call<Filesystem>('POST', '/filesystems', {
        name: 'a',
        region,
      });
      await call('DELETE', `/filesystems/${filesystem.data.id}`);
      await call('PUT', '/firewall-rules', { data: [] });
      const { body: ruleset } = await call<Ruleset>('POST', '/firewall-rulesets', {
        name: 'r',
        region,
        rules: [],
      });
      await call('PATCH', `/firewall-rulesets/${ruleset.data.id}`, { name: 's' });
      await call('DELETE', `/firewall-rulesets/${ruleset.data.id}`);
      const { data } = (await call<AuditEvent[]>('GET', '/audit-events')).body;
      const kinds = data.map(({ resource_name, action }) => `${resource_name} ${action}`);
      for (const kind of [
        'ssh_key created',
        'instance created',
        'instance updated',
        'instance restarted',
        'instance power_cycled',
        'instance terminated',
        'filesystem created',
        'filesystem deleted',
        'firewall_rules updated',
        'firewall_ruleset created',
        'firewall_ruleset updated',
        'firewall_ruleset deleted',
      ]) {
        assert.equal(kinds.filter((one) => one === kind).length, 1, kind);
      }
      const created = data.find(
        ({ resource_name, action }) => resource_name === 'instance' && action === 'created',
      );
      assert.equal(created?.service_name, 'cloud');
      assert.equal(created?.catalog_version, '2025-09-06');
      assert.match(created?.event_id ?? '', /^[0-9a-f]{32}$/);
      assert.match(created?.event_time ?? '', /^2026-01-01T00:00:0\d\.\d{6}Z$/);
      assert.deepEqual(created?.resource_lrns, [`lrn:cloud:instance:${id}`]);
      assert.match(created?.request_api_key_lrn ?? '', /^lrn:cloud:api_key:[0-9a-f]{32}$/);
      assert.match(created?.resource_owner_lrn ?? '', /^lrn:cloud:account:[0-9a-f]{32}$/);
      assert.deepEqual(created?.additional_details, {
        instance_lrn: `lrn:cloud:instance:${id}`,
        instance_type: 'cpu_1x_general',
        region,
      });
    });

    test('a page has its token beside data, the last has null, and together they list everything once', async () => {
      const { call, clock } = await startCloud(database);
      for (let count = 0; count < 120; count++) {
        if (count % 7 === 0) clock.turn(1);
        await call('PUT', '/firewall-rules', { data: [] });
      }
      const path = '/audit-events?resource_type=cloud.firewall_rules';
      const first = (await call<AuditEvent[]>('GET', path)).body;
      assert.equal(first.data.length, 100);
      assert.equal(typeof first.page_token, 'string');
      const rest = (await call<AuditEvent[]>('GET', `${path}&page_token=${first.page_token}`)).body;
      assert.equal(rest.data.length, 20);
      assert.equal(rest.page_token, null);
      const ids = [...first.data, ...rest.data].map(({ event_id }) => event_id);
      assert.equal(new Set(ids).size, 120);
    });

    test('start and end are inclusive, and invalid values are refused', async () => {
      const { call, clock } = await startCloud(database);
      clock.turn(60_000);
      await call('PUT', '/firewall-rules', { data: [] });
      const at = '2026-01-01T00:01:00.000000%2B00:00';
      const { data } = (await call<AuditEvent[]>('GET', `/audit-events?start=${at}&end=${at}`))
        .body;
      assert.equal(data.length, 1);
      for (const time of ['2026-01-01T00:01:00', '2026-01-01 00:01:00.000', '2026-01-01T00:01']) {
        const path = `/audit-events?start=${time}&end=${time}`;
        assert.equal((await call<AuditEvent[]>('GET', path)).body.data.length, 1, time);
      }
      for (const query of ['start=yesterday', 'end=7', 'page_token=x', 'resource_type=api_key']) {
        const { status, body } = await call('GET', `/audit-events?${query}`);
        assert.equal(status, 400, query);
        assert.equal(body.error.code, 'global/invalid-parameters');
      }
    });
  });
}
