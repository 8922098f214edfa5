// Which roles may see and change limits, the audit of changes, and the limits of new keys.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { withDefaults } from '#config/defaults.ts';
import { type Config, ConfigSchema } from '#config/schema.ts';
import { bothDatabases } from '#test/support/databases.ts';
import {
  brief,
  complete,
  listKeys,
  newKey,
  startPricedModel,
} from '#test/support/limits/callers.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const none = {
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrent_requests: null,
  monthly_budget: null,
};

async function invite(server: TestServer, owner: SessionFetch, role: string) {
  const response = await owner('/dashboard/api/invitations', { json: { role } });
  const { link } = (await response.json()) as { link: string };
  return server.joinBy(link, `invited-${role}@example.com`);
}

for (const database of bothDatabases) {
  describe(`limits as settings on ${database}`, () => {
    test('a key is created with limits, changed limit by limit, and listed with its spend', async () => {
      const server = await startTestServer({
        database,
        config: { models: await startPricedModel() },
      });
      const owner = await server.join();
      const limits = { requests_per_minute: 60, monthly_budget: 0.123456789 };
      const key = await newKey(owner, limits, 'app');
      assert.deepEqual(key.limits, { ...none, ...limits });
      const changed = await owner(`/dashboard/api/api-keys/${key.id}`, {
        method: 'PATCH',
        json: { label: 'app 2', limits: { requests_per_minute: null, concurrent_requests: 4 } },
      });
      assert.equal(changed.status, 200);
      const response = await complete(server, key, brief);
      // A 503 counts as a request without cost, and would only show as a wrong sum below.
      assert.equal(response.status, 200, await response.text());
      const row = await until('its spend is there', async () => {
        const rows = await listKeys(owner);
        return rows.find(({ label, spend }) => label === 'app 2' && spend.requests === 1) ?? null;
      });
      assert.deepEqual(row.limits, {
        ...none,
        concurrent_requests: 4,
        monthly_budget: 0.123456789,
      });
      assert.equal(row.spend.month, new Date().toISOString().slice(0, 7));
      // $0.025 per million prompt tokens and $0.04 per million of the answer: one.
      assert.equal(row.spend.cost, (25 * (row.spend.tokens - 1) + 40) / 1e9);
      const account = await (await owner('/dashboard/api/limits')).json();
      assert.deepEqual(account, { limits: none, spend: row.spend });
    });

    test('changes are in the audit log, with the former values', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const key = await newKey(owner, { tokens_per_minute: 5 });
      await owner(`/dashboard/api/api-keys/${key.id}`, {
        method: 'PATCH',
        json: { limits: { tokens_per_minute: 6 } },
      });
      await owner('/dashboard/api/limits', { method: 'PUT', json: { monthly_budget: 2.5 } });
      const log = await (await owner('/dashboard/api/audit-events')).json();
      const { data } = log as { data: { action: string; resource_id: string; details: object }[] };
      assert.deepEqual(
        data.slice(0, 2).map(({ action, details }) => ({ action, details })),
        [
          {
            action: 'account.limits_changed',
            details: { from: none, to: { ...none, monthly_budget: 2.5 } },
          },
          {
            action: 'api_key.updated',
            details: {
              from: { label: 'limited', limits: { ...none, tokens_per_minute: 5 } },
              to: { label: 'limited', limits: { ...none, tokens_per_minute: 6 } },
            },
          },
        ],
      );
      assert.equal(data[1]?.resource_id, key.id);
    });
  });
}

describe('limits as settings', () => {
  test('members change their own keys, owners all keys and the account, viewers nothing', async () => {
    const server = await startTestServer();
    const owner = await server.join();
    const key = await newKey(owner, {});
    const path = `/dashboard/api/api-keys/${key.id}`;
    const json = { limits: { requests_per_minute: 1 } };
    for (const [role, keys, account] of [
      ['member', 403, 403],
      ['viewer', 403, 403],
      ['owner', 200, 200],
    ] as const) {
      const person = await invite(server, owner, role);
      assert.equal((await person(path, { method: 'PATCH', json })).status, keys, role);
      if (role === 'member') {
        const { id } = await newKey(person, {});
        const own = await person(`/dashboard/api/api-keys/${id}`, { method: 'PATCH', json });
        assert.equal(own.status, 200);
      }
      const put = await person('/dashboard/api/limits', { method: 'PUT', json: json.limits });
      assert.equal(put.status, account, role);
      assert.equal((await person('/dashboard/api/limits')).status, 200, role);
    }
    const withKey = { headers: { authorization: `Bearer ${key.key}` } };
    assert.equal((await server.fetch('/dashboard/api/limits', withKey)).status, 403);
  });

  test('zero, fractions of requests, unknown limits and unknown keys are refused', async () => {
    const server = await startTestServer();
    const owner = await server.join();
    const put = (json: object) => owner('/dashboard/api/limits', { method: 'PUT', json });
    for (const json of [
      { requests_per_minute: 0 },
      { requests_per_minute: 1.5 },
      { tokens_per_minute: '5' },
      { concurrent_requests: -1 },
      { monthly_budget: 0 },
      { monthly_budget: 1e12 },
      { requests_per_hour: 5 },
    ]) {
      assert.equal((await put(json)).status, 400, JSON.stringify(json));
    }
    const unknown = `/dashboard/api/api-keys/${'0'.repeat(32)}`;
    assert.equal((await owner(unknown, { method: 'PATCH', json: { label: 'x' } })).status, 404);
  });

  test('new keys and the account start with the configured limits', async () => {
    const key = { requests_per_minute: 30, monthly_budget: 5 };
    const account = { concurrent_requests: 50 };
    const server = await startTestServer({ config: { limits: { key, account } } });
    const owner = await server.join();
    const made = await newKey(owner, { monthly_budget: null, tokens_per_minute: 9 });
    assert.deepEqual(made.limits, { ...none, requests_per_minute: 30, tokens_per_minute: 9 });
    const first = (await listKeys(owner)).find(({ label }) => label === 'first');
    assert.deepEqual(first?.limits, { ...none, ...key });
    const whole = (await (await owner('/dashboard/api/limits')).json()) as { limits: object };
    assert.deepEqual(whole.limits, { ...none, ...account });
  });

  test('a reloaded configuration changes the limits of new keys only', async () => {
    const server = await startTestServer();
    const owner = await server.join();
    const old = await newKey(owner, {});
    const limits = { key: { concurrent_requests: 3 }, account: { concurrent_requests: 4 } };
    server.reload(() => ({
      config: withDefaults(ConfigSchema, { limits }) as Config,
      file: null,
      presetApiKey: null,
    }));
    const made = await newKey(owner, { monthly_budget: 1 });
    assert.deepEqual(made.limits, { ...none, concurrent_requests: 3, monthly_budget: 1 });
    assert.deepEqual((await listKeys(owner)).find(({ id }) => id === old.id)?.limits, none);
    const whole = (await (await owner('/dashboard/api/limits')).json()) as { limits: object };
    assert.deepEqual(whole.limits, none);
  });
});
