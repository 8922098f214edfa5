// What plain requests cost that were cut off while a server was at work on them. Nothing is known of what it
// generated, so they cost what was reserved, once, and their rows say so.

import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { UsageRequest, UsageRequestPage } from '#accounts/usage/schema.ts';
import { openDatabase } from '#db/open.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { createDatabase, databases, stopOwnPostgres } from '#test/support/databases.ts';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { listKeys, newKey, readError } from '#test/support/limits/callers.ts';
import { makeFolder, serveMillrace } from '#test/support/process.ts';
import { type SessionFetch, startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement, readRows } from '#test/support/usage/usage.ts';

const messages = [{ role: 'user', content: 'Write down everything that you know about mills.' }];
const apiKey = `secret_test_${'0'.repeat(32)}.${'a'.repeat(32)}`;

const readRequests = async (owner: SessionFetch) => {
  const response = await owner('/dashboard/api/usage/requests?limit=100');
  return ((await response.json()) as UsageRequestPage).data;
};

const lastRow = (owner: SessionFetch) =>
  until<UsageRequest | undefined>('it has ended', async () => {
    const [row] = await readRequests(owner);
    return row?.status === 'running' ? undefined : row;
  });

for (const database of databases) {
  describe(`plain requests that are cut off, on ${database}`, () => {
    test('cost what was reserved when their client leaves', async (context) => {
      const upstream = await startScriptedUpstream({ behaviour: 'slow-headers' });
      context.after(() => upstream.close());
      const backends = [{ name: 'there', url: upstream.url }];
      const price = { input: 1, output: 10 };
      const server = await startTestServer({
        database,
        config: { models: { catalog: { [gatewayModel]: { price, backends } } } as never },
      });
      const owner = await server.join();
      const key = await newKey(owner, { monthly_budget: 1, tokens_per_minute: 100_000 });
      const leaving = new AbortController();
      const asked = server.fetch('/v1/chat/completions', {
        json: { model: gatewayModel, messages, max_tokens: 300, n: 2 },
        headers: { authorization: `Bearer ${key.key}` },
        signal: leaving.signal,
      });
      asked.catch(() => {});
      await until('it was asked', () => upstream.requests.length === 1);
      leaving.abort();
      const row = await lastRow(owner);
      assert.deepEqual([row.status, row.reserved], ['aborted', true]);
      assert.equal(row.completion_tokens, 600);
      assert(row.prompt_tokens > 5 && row.prompt_tokens < 100, `${row.prompt_tokens}`);
      assert.equal(row.first_token_ms, null);
      const costNano = row.prompt_tokens * 1000 + 600 * 10_000;
      assert.equal(Math.round(row.cost * 1e9), costNano);
      const spend = await until('it is in the sums', async () => {
        const found = (await listKeys(owner)).find(({ id }) => id === key.id);
        return found?.spend.requests === 1 ? found.spend : null;
      });
      assert.equal(Math.round(spend.cost * 1e9), costNano);
      const csv = await (await owner('/dashboard/api/usage/requests.csv')).text();
      assert.match(csv, /,cost,reserved\r\n.*,true\r\n/);
      await server.stop();
    });

    test('cost what was reserved when their server is killed, and budgets hold', async (context) => {
      const upstream = await startScriptedUpstream({ behaviour: 'slow-headers' });
      const { url, drop } = await createDatabase(database);
      const dataDir = makeFolder();
      const config = join(makeFolder(), 'millrace.yaml');
      const catalog = {
        [gatewayModel]: {
          price: { input: 1, output: 10 },
          backends: [{ name: 'there', url: upstream.url }],
        },
      };
      // JSON is YAML.
      writeFileSync(config, JSON.stringify({ models: { catalog } }));
      const where = ['--data-dir', dataDir, ...(url === null ? [] : ['--database-url', url])];
      const start = () =>
        serveMillrace(['--config', config, '--log-level', 'silent', ...where], {
          MILLRACE_API_KEY: apiKey,
        });
      const db = await openDatabase({ url, poolSize: 1, dataDir });
      context.after(async () => {
        await upstream.close();
        await db.destroy();
        await drop();
        await stopOwnPostgres();
      });
      const ask = (at: string, path: string, body: object) =>
        fetch(`${at}/v1/${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: gatewayModel, max_tokens: 500, ...body }),
        });
      const read = () => readRows(db);

      const first = await start();
      await db.updateTable('api_keys').set({ monthly_budget_nano: 20_000_000 }).execute();
      const cut = [
        ask(first.url, 'chat/completions', { messages }),
        ask(first.url, 'completions', { prompt: 'Once upon a time', n: 2 }),
      ].map((response) => response.then(() => 'answered').catch(() => 'cut'));
      await until('both rows have their cost', async () => {
        const rows = await read();
        return rows.length === 2 && rows.every(({ cost_nano }) => cost_nano > 0);
      });
      first.child.kill('SIGKILL');
      await first.ended;
      assert.deepEqual(await Promise.all(cut), ['cut', 'cut']);

      // PostgreSQL may have other servers: there the dead are known by their silence, which is made longer.
      if (url !== null) await db.updateTable('usage_processes').set({ last_seen: 0 }).execute();
      const second = await start();
      const rows = await until('what ran is closed', async () => {
        const left = await read();
        return left.every(({ status }) => status === 'interrupted') ? left : null;
      });
      await assertAgreement(db);
      assert.deepEqual(
        rows.map(({ reserved, completion_tokens }) => [reserved, completion_tokens]).sort(),
        [
          [1, 1000],
          [1, 500],
        ],
      );
      for (const row of rows) {
        assert(row.prompt_tokens > 0);
        assert.equal(row.cost_nano, row.prompt_tokens * 1000 + row.completion_tokens * 10_000);
        assert.equal(row.backend, 'there');
      }
      const spentNano = rows.reduce((sum, { cost_nano }) => sum + cost_nano, 0);
      assert(spentNano > 15_000_000 && spentNano < 20_000_000, `${spentNano}`);
      // The look at the database that this is held against is at most a second old.
      const refusal = await until('the budget is spent', async () => {
        const response = await ask(second.url, 'chat/completions', { messages });
        return response.status === 429 ? response : null;
      });
      assert.equal((await readError(refusal)).code, 'insufficient_quota');
      second.child.kill('SIGKILL');
      await second.ended;
    });
  });
}

describe('plain requests that are cut off', () => {
  test('cost nothing while they wait for a backend', async (context) => {
    const gateway = await startGateway(context, {
      upstreams: [{ behaviour: 'slow-headers' }],
      backend: { concurrency: 1 },
    });
    const owner = await gateway.server.join();
    const [working, waiting] = [new AbortController(), new AbortController()];
    gateway.chat({ max_tokens: 10 }, { signal: working.signal }).catch(() => {});
    await until('one is asked', () => gateway.upstreams[0]?.requests.length === 1);
    gateway.chat({ max_tokens: 20 }, { signal: waiting.signal }).catch(() => {});
    await until('one waits', async () =>
      / 1$/m.test(
        (await gateway.metrics()).match(/^millrace_queue_length.*hermes3-8b.*$/m)?.[0] ?? '',
      ),
    );
    waiting.abort();
    const row = await lastRow(owner);
    assert.deepEqual(
      [row.status, row.prompt_tokens, row.completion_tokens, row.cost, row.reserved],
      ['aborted', 0, 0, 0, false],
    );
    working.abort();
  });

  test('cost their reservation once, however many backends failed before', async (context) => {
    const gateway = await startGateway(context, {
      upstreams: [{ behaviour: 'html-error' }, { behaviour: 'html-error' }],
    });
    const owner = await gateway.server.join();
    const [first, second] = gateway.upstreams;
    assert.equal((await gateway.chat({ max_tokens: 10 })).status, 502);
    const failed = await lastRow(owner);
    assert.deepEqual(
      [failed.status, failed.completion_tokens, failed.cost, failed.reserved],
      ['failed', 0, 0, false],
    );
    second?.behave('slow-headers');
    const before = second?.requests.length ?? 0;
    const leaving = new AbortController();
    const answer = gateway.chat({ max_tokens: 10 }, { signal: leaving.signal });
    answer.catch(() => {});
    await until('the second is asked', () => (second?.requests.length ?? 0) > before);
    leaving.abort();
    const row = await until('there are two', async () => {
      const rows = await readRequests(owner);
      return rows.length === 2 && rows[0]?.status !== 'running' ? rows[0] : undefined;
    });
    assert.deepEqual([row?.status, row?.completion_tokens, row?.reserved], ['aborted', 10, true]);
    assert((first?.requests.length ?? 0) > 0);
  });

  test('cost their reservation when a drain is over before they are', async (context) => {
    const upstream = await startScriptedUpstream({ behaviour: 'slow-headers' });
    context.after(() => upstream.close());
    const backends = [{ name: 'there', url: upstream.url }];
    const server = await startTestServer({
      config: {
        server: { drain_seconds: 0 },
        models: { catalog: { [gatewayModel]: { backends } } } as never,
      },
    });
    const asked = server.fetch('/v1/chat/completions', {
      json: { model: gatewayModel, messages, max_tokens: 77 },
    });
    asked.catch(() => {});
    await until('it is asked', () => upstream.requests.length === 1);
    await server.stop();
    const { dataDir, databaseUrl: url } = server;
    const db = await openDatabase({ url, poolSize: 1, dataDir });
    const [row] = await db.selectFrom('usage_requests').selectAll().execute();
    await assertAgreement(db);
    await db.destroy();
    assert.deepEqual([row?.reserved, row?.completion_tokens], [1, 77]);
    assert((row?.cost_nano ?? 0) > 0);
  });

  test('cost what they used at a model on this machine', async () => {
    const server = await startTestServer({});
    const owner = await server.join();
    const leaving = new AbortController();
    const asked = server.fetch('/v1/completions', {
      json: { model: gatewayModel, prompt: 'Once', max_tokens: 1900, ignore_eos: true },
      signal: leaving.signal,
    });
    asked.catch(() => {});
    await until('it generates', async () => {
      const [row] = await readRequests(owner);
      return (row?.completion_tokens ?? 0) > 0;
    });
    leaving.abort();
    const row = await lastRow(owner);
    assert.deepEqual([row.status, row.reserved], ['aborted', false]);
    assert(row.completion_tokens > 0 && row.completion_tokens < 1900);
  });
});
