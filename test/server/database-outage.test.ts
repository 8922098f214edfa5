// PostgreSQL stops and returns while requests are served: known API keys keep working, everything else is refused with
// a time to retry, and every request is counted once.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '#db/open.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { createHandClock } from '#test/support/clock.ts';
import { createDatabase, noPostgres } from '#test/support/databases.ts';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { type Outage, type OutageProxy, startOutageProxy } from '#test/support/outage-proxy.ts';
import { readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement, readRows } from '#test/support/usage/usage.ts';

const minuteMs = 60_000;

interface World {
  dataDir: string;
  proxy: OutageProxy;
  /** The database past the proxy. */
  direct: Awaited<ReturnType<typeof openDatabase>>;
}

async function openWorld(context: TestContext): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-outage-'));
  const { url, drop } = await createDatabase('postgres');
  assert(url !== null);
  const proxy = await startOutageProxy(url);
  const direct = await openDatabase({ url, poolSize: 1, dataDir });
  context.after(async () => {
    await direct.destroy();
    await proxy.close();
    await drop();
    await rm(dataDir, { recursive: true, force: true });
  });
  return { dataDir, proxy, direct };
}

/** The clock is turned by hand, so that cached keys are as old as the test wants. */
async function startWorld(context: TestContext, config: object = {}) {
  const world = await openWorld(context);
  const clock = createHandClock();
  const on = { dataDir: world.dataDir, databaseUrl: world.proxy.url };
  const gateway = await startGateway(context, { upstreams: [{}], server: { on, clock, config } });
  const chat = async () => (await gateway.chat()).status;
  const chats = (count: number) => Promise.all(Array.from({ length: count }, chat));
  return { ...world, ...gateway, clock, chat, chats };
}

const errorOf = async (response: Response) => ({
  status: response.status,
  retryAfter: response.headers.get('retry-after'),
  code: ((await response.json()) as { error: { code: string } }).error.code,
});

describe('an outage of PostgreSQL', { skip: noPostgres }, () => {
  for (const outage of ['refused', 'silent'] satisfies Outage[]) {
    test(`known keys are served and each request is counted once (${outage})`, async (context) => {
      const { server, proxy, direct, clock, chats, metrics } = await startWorld(context);
      const owner = await server.join();
      assert.deepEqual(new Set(await chats(5)), new Set([200]));
      await proxy.cut(outage);
      clock.turn(2000);
      assert.deepEqual(new Set(await chats(20)), new Set([200]));
      const connections = proxy.connections();
      for (let round = 0; round < 3; round++) {
        clock.turn(minuteMs);
        assert.deepEqual(new Set(await chats(20)), new Set([200]));
      }
      // Only the probe connects during the outage.
      assert(proxy.connections() - connections < 20, 'requests reconnect during the outage');

      const unavailable = { status: 503, retryAfter: '2' };
      assert.deepEqual(await errorOf(await owner('/dashboard/api/api-keys')), {
        ...unavailable,
        code: 'database_unavailable',
      });
      assert.deepEqual(await errorOf(await server.fetch('/api/v1/instances')), {
        ...unavailable,
        code: 'provider/internal-unavailable',
      });
      const authorization = 'Bearer secret_unknown';
      assert.deepEqual(
        await errorOf(await server.fetch('/v1/models', { headers: { authorization } })),
        {
          ...unavailable,
          code: 'database_unavailable',
        },
      );
      const ready = await server.fetch('/readyz');
      assert.deepEqual(
        [ready.status, await ready.json()],
        [200, { status: 'database unavailable' }],
      );
      assert.match(await metrics(), /^millrace_database_up 0$/m);

      await proxy.restore();
      await until(
        'the database is back',
        async () => (await owner('/dashboard/api/me')).status === 200,
      );
      assert.deepEqual(new Set(await chats(5)), new Set([200]));
      await clock.until('all rows are written', async () => (await readRows(direct)).length === 90);
      await clock.until('nothing is left in the spool', async () =>
        /^millrace_usage_spooled 0$/m.test(await metrics()),
      );
      const rows = await readRows(direct);
      assert(rows.every(({ status }) => status === 'done'));
      await assertAgreement(direct);
    });
  }

  test('a known key stops working when the outage lasts too long, and a revoked one is not known', async (context) => {
    const { server, proxy, clock, chat } = await startWorld(context, {
      database: { outage_minutes: 5 },
    });
    const owner = await server.join();
    const made = await owner('/dashboard/api/api-keys', { json: { label: 'revoked' } });
    const { id, key } = (await made.json()) as { id: string; key: string };
    const headers = { authorization: `Bearer ${key}` };
    assert.equal((await server.fetch('/v1/models', { headers })).status, 200);
    assert.equal(await chat(), 200);
    const revoked = await owner(`/dashboard/api/api-keys/${id}`, { method: 'DELETE' });
    assert(revoked.ok);
    await proxy.cut('refused');
    clock.turn(2000);
    assert.equal((await server.fetch('/v1/models', { headers })).status, 503);
    assert.equal(await chat(), 200);
    clock.turn(5 * minuteMs);
    assert.equal(await chat(), 503);
  });

  test('budgets count what is spent during the outage', async (context) => {
    const { server, proxy, clock } = await startWorld(context);
    const owner = await server.join();
    const made = await owner('/dashboard/api/api-keys', {
      json: { label: 'limited', limits: { monthly_budget: 0.00005 } },
    });
    const { key } = (await made.json()) as { key: string };
    const chat = async () => {
      const response = await server.fetch('/v1/chat/completions', {
        headers: { authorization: `Bearer ${key}` },
        json: { model: gatewayModel, max_tokens: 20, messages: [{ role: 'user', content: 'Go' }] },
      });
      await response.text();
      return response.status;
    };
    assert.equal(await chat(), 200);
    await proxy.cut('refused');
    clock.turn(2000);
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429 && statuses.length < 100) statuses.push(await chat());
    assert(statuses.length > 2, `${statuses}`);
    assert.equal(statuses.at(-1), 429);
  });

  test('PostgreSQL ends the transaction of a server that is cut off, and so frees its locks', async (context) => {
    const { direct } = await openWorld(context);
    const result = await sql`show idle_in_transaction_session_timeout`.execute(direct);
    assert.deepEqual(result.rows, [{ idle_in_transaction_session_timeout: '10s' }]);
  });

  test('usage survives kill -9 during the outage', async (context) => {
    const { dataDir, proxy, direct } = await openWorld(context);
    const upstream = await startScriptedUpstream({});
    context.after(() => upstream.close());
    const file = join(dataDir, 'millrace.yaml');
    const backend = { name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' };
    const config = {
      database: { url: proxy.url },
      cloud: { driver: 'none' },
      models: { catalog: { [gatewayModel]: { backends: [backend] } } },
    };
    await writeFile(file, JSON.stringify(config));
    const args = ['--config', file, '--data-dir', dataDir];
    const first = await serveMillrace(args);
    const key = readFirstSecret(first.stdout(), 'First API key');
    const chat = async (url: string) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: gatewayModel, messages: [{ role: 'user', content: 'Go' }] }),
      });
      await response.text();
      return response.status;
    };
    assert.equal(await chat(first.url), 200);
    await until('the first row is written', async () => (await readRows(direct)).length === 1);
    await proxy.cut('refused');
    for (let count = 0; count < 10; count++) assert.equal(await chat(first.url), 200);
    await until('the rows are on disk', async () => {
      const metrics = await (await fetch(`${first.url}/metrics`)).text();
      return /^millrace_usage_spooled 10$/m.test(metrics);
    });
    first.child.kill('SIGKILL');
    await first.ended;
    await proxy.restore();
    const second = await serveMillrace(args);
    assert.equal((await readRows(direct)).length, 11);
    assert.equal(await chat(second.url), 200);
    await until('the last row is written', async () => (await readRows(direct)).length === 12);
    await assertAgreement(direct);
  });
});
