// API keys through the endpoints people have.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { createHandClock } from '#test/support/clock.ts';
import { databases } from '#test/support/databases.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

async function makeKey(owner: TestServer['fetch'], input: object) {
  const response = await owner('/dashboard/api/api-keys', { json: input });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

for (const database of databases) {
  describe(`API keys on ${database}`, () => {
    test('the first start creates a key that works on both APIs in every header form', async () => {
      const server = await startTestServer({ database });
      const { key } = server;
      assert.match(key, /^secret_first_[0-9a-f]{32}\.[A-Za-z0-9]{32}$/);
      const forms = [
        `Bearer ${key}`,
        `bearer ${key}`,
        `Basic ${base64(`${key}:`)}`,
        `Basic ${key}`,
      ];
      for (const authorization of forms) {
        for (const path of ['/v1/models', '/api/v1/instances']) {
          const response = await server.fetch(path, { headers: { authorization } });
          assert.equal(response.status, 200, `${authorization.slice(0, 12)} on ${path}`);
        }
      }
      const ask = (given: string) =>
        fetch(`${server.url}/v1/models`, { headers: { 'x-api-key': given } });
      assert.equal((await ask(key)).status, 200);
      assert.equal((await ask('wrong')).status, 401);
    });

    test('a second start creates no second key, and the first still works', async () => {
      const server = await startTestServer({ database });
      await server.stop();
      const again = await startTestServer({ on: server });
      assert.equal(again.firstApiKey, null);
      const headers = { authorization: `Bearer ${server.key}` };
      assert.equal((await again.fetch('/v1/models', { headers })).status, 200);
    });

    test('MILLRACE_API_KEY presets the first key, at every start anew', async () => {
      const presetApiKey = 'my-own-key-of-any-shape-1234567890';
      const server = await startTestServer({ database, presetApiKey });
      assert.equal(server.firstApiKey, null);
      assert.equal((await server.fetch('/v1/models')).status, 200);
      await server.stop();
      const again = await startTestServer({ on: server, presetApiKey });
      assert.equal((await again.fetch('/v1/models')).status, 200);
    });

    test('a new key is shown once, listed masked, and stops working when it is revoked', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const { body: made } = await makeKey(owner, { label: 'My App, v2' });
      assert.match(made.key ?? '', /^secret_my-app-v2_[0-9a-f]{32}\.[A-Za-z0-9]{32}$/);
      const list = await (await owner('/dashboard/api/api-keys')).text();
      assert(list.includes('My App, v2'));
      assert(!list.includes((made.key ?? '').slice(-20)), 'the list shows the secret');
      const headers = { authorization: `Bearer ${made.key}` };
      assert.equal((await server.fetch('/v1/models', { headers })).status, 200);
      const revoked = await owner(`/dashboard/api/api-keys/${made.id}`, { method: 'DELETE' });
      assert.equal(revoked.status, 200);
      const refused = await server.fetch('/v1/models', { headers });
      assert.equal(refused.status, 401);
      const { error } = (await refused.json()) as { error: { code: string; message: string } };
      assert.equal(error.code, 'invalid_api_key');
      assert(!error.message.includes((made.key ?? '').slice(8, -4)), 'the refusal shows the key');
    });

    test('a key revoked by one process stops within a second in another', async () => {
      const clock = createHandClock();
      const one = await startTestServer({ database, clock });
      const owner = await one.join();
      const { body: made } = await makeKey(owner, { label: 'shared' });
      const other = await startTestServer({ on: one, clock });
      const headers = { authorization: `Bearer ${made.key}` };
      assert.equal((await other.fetch('/v1/models', { headers })).status, 200);
      await owner(`/dashboard/api/api-keys/${made.id}`, { method: 'DELETE' });
      assert.equal((await one.fetch('/v1/models', { headers })).status, 401);
      clock.turn(1000);
      assert.equal((await other.fetch('/v1/models', { headers })).status, 401);
    });

    test('an expired key is refused, and so is an expiry in the past', async () => {
      const clock = createHandClock();
      const server = await startTestServer({ database, clock });
      const owner = await server.join();
      const late = await makeKey(owner, { label: 'late', expires_at: '2025-12-31T00:00:00Z' });
      assert.equal(late.status, 400);
      const leap = await makeKey(owner, { label: 'leap', expires_at: '2026-12-31T23:59:60Z' });
      assert.equal(leap.status, 400);
      const { body } = await makeKey(owner, { label: 'soon', expires_at: '2026-01-01T00:01:00Z' });
      const headers = { authorization: `Bearer ${body.key}` };
      assert.equal((await server.fetch('/v1/models', { headers })).status, 200);
      clock.turn(60_000);
      assert.equal((await server.fetch('/v1/models', { headers })).status, 401);
    });

    test('invalid requests are refused with the reason', async () => {
      const owner = await (await startTestServer({ database })).join();
      const tell = async (input: object) => {
        const { error } = (await makeKey(owner, input)).body as unknown as {
          error: { message: string };
        };
        return error.message;
      };
      assert.equal(
        await tell({ label: 'x', scopes: ['zz'] }),
        'scopes[0] must be one of inference, cloud.',
      );
      assert.equal(await tell({ label: 'x'.repeat(65) }), 'label must have at most 64 characters.');
      assert.equal(
        await tell({ label: 'x', expires_at: 'soon' }),
        'expires_at must be a time such as 2026-01-31T12:00:00Z.',
      );
    });

    test('a key without the scope is refused in the error format of that API', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const { body: cloud } = await makeKey(owner, { label: 'c', scopes: ['cloud'] });
      const { body: chat } = await makeKey(owner, { label: 'i', scopes: ['inference'] });
      const inference = await server.fetch('/v1/models', {
        headers: { authorization: `Bearer ${cloud.key}` },
      });
      assert.equal(inference.status, 403);
      assert.equal(
        ((await inference.json()) as { error: { code: string } }).error.code,
        'insufficient_scope',
      );
      const refused = await server.fetch('/api/v1/instances', {
        headers: { authorization: `Bearer ${chat.key}` },
      });
      assert.equal(refused.status, 403);
      assert.equal(
        ((await refused.json()) as { error: { code: string } }).error.code,
        'global/forbidden',
      );
    });

    test('the last use is recorded lazily', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      await server.fetch('/v1/models');
      await server.stop();
      const again = await startTestServer({ on: server });
      const session = again.withCookie(owner.cookie);
      const list = await (await session('/dashboard/api/api-keys')).json();
      const { data } = list as { data: { last_used_at: string | null }[] };
      assert.notEqual(data[0]?.last_used_at, null);
    });

    test('neither the key nor its secret part is in the database', async () => {
      const server = await startTestServer({ database });
      const secret = server.key.split('.')[1] as string;
      // Two connections to SQLite in one thread wait for each other until their timeout.
      await server.stop();
      const found = await searchDatabase(server, secret);
      assert.equal(found, false);
      assert.equal(await searchDatabase(server, 'first'), true, 'the search finds what is there');
    });
  });
}

async function searchDatabase(server: TestServer, text: string): Promise<boolean> {
  const { openDatabase } = await import('#db/open.ts');
  const db = await openDatabase({ url: server.databaseUrl, poolSize: 1, dataDir: server.dataDir });
  try {
    for (const table of ['api_keys', 'audit_events', 'sessions', 'invitations'] as const) {
      const rows = await db.selectFrom(table).selectAll().execute();
      if (JSON.stringify(rows).includes(text)) return true;
    }
    return false;
  } finally {
    await db.destroy();
  }
}
