// Kills the real server with SIGKILL while it runs background responses, and starts it again on what is left: none is
// lost, none runs twice, and what was generated is billed once.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import OpenAI from 'openai';
import { openDatabase } from '#db/open.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { createDatabase, databases, stopOwnPostgres } from '#test/support/databases.ts';
import { gatewayModel as model } from '#test/support/gateway.ts';
import { makeFolder, serveMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement, readRows } from '#test/support/usage/usage.ts';

const apiKey = `secret_test_${'0'.repeat(32)}.${'a'.repeat(32)}`;

describe('background responses of a killed server', () => {
  after(stopOwnPostgres);

  /** Starts servers one after the other on the same data, each with its own settings. */
  async function createStart(
    t: TestContext,
    database: (typeof databases)[number],
    upstream: ScriptedUpstream,
  ) {
    t.after(() => upstream.close());
    const { url, drop } = await createDatabase(database);
    const dataDir = makeFolder();
    const db = await openDatabase({ url, poolSize: 1, dataDir });
    t.after(() => db.destroy().then(drop));
    const file = join(dataDir, 'millrace.yaml');
    const backends = [{ name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' }];
    const start = async (settings?: object) => {
      // JSON is YAML.
      const catalog = { [model]: { backends, price: { input: 0, output: 1000 } } };
      writeFileSync(file, JSON.stringify({ models: { catalog }, ...settings }));
      const flags = url === null ? [] : ['--database-url', url];
      const server = await serveMillrace(['--data-dir', dataDir, '--config', file, ...flags], {
        MILLRACE_API_KEY: apiKey,
        MILLRACE_LOG_LEVEL: 'warn',
      });
      const baseURL = `${server.url}/v1`;
      return { ...server, api: new OpenAI({ baseURL, apiKey, maxRetries: 0 }).responses };
    };
    return { url, db, start };
  }

  for (const database of databases) {
    describe(`background responses and SIGKILL on ${database}`, () => {
      test('a killed one fails once, and its events end', async (t) => {
        const upstream = await startScriptedUpstream({ words: 100_000, eventDelayMs: 5 });
        const { url, db, start } = await createStart(t, database, upstream);
        const killed = await start();
        const { id } = await killed.api.create({ model, input: 'go', background: true });
        const seen = await until('events are stored', async () => {
          const rows = await db.selectFrom('response_events').select('last').execute();
          return Math.max(0, ...rows.map(({ last }) => last)) > 10;
        });
        assert(seen);
        await until('its usage is written', async () =>
          (await readRows(db)).some(({ completion_tokens }) => completion_tokens > 0),
        );
        killed.child.kill('SIGKILL');
        await killed.ended;

        // Other servers of PostgreSQL know the dead by their silence, which is made longer.
        await db.updateTable('response_runs').set({ lease_until: 0 }).execute();
        if (url !== null) await db.updateTable('usage_processes').set({ last_seen: 0 }).execute();
        const heir = await start();
        const failed = await until('it has failed', async () => {
          const response = await heir.api.retrieve(id);
          return response.status === 'failed' ? response : null;
        });
        assert.match(failed.error?.message ?? '', /was lost/);
        const events = [];
        for await (const event of await heir.api.retrieve(id, { stream: true })) events.push(event);
        assert.deepEqual(
          events.map(({ sequence_number }) => sequence_number),
          events.map((_, at) => at),
        );
        assert.equal(events.at(-1)?.type, 'response.failed');
        const rows = await until('its usage is closed', async () => {
          const all = await readRows(db);
          return all.every(({ status }) => status === 'interrupted') ? all : null;
        });
        assert.equal(rows.length, 1, 'it is billed once');
        assert((rows[0]?.completion_tokens ?? 0) > 0);
        assert.equal(upstream.requests.length, 1, 'it ran once');
        await assertAgreement(db);
        heir.child.kill('SIGTERM');
        await heir.ended;
      });

      test('what queued ones have reserved stays reserved', async (t) => {
        const upstream = await startScriptedUpstream({ words: 10, eventDelayMs: 1_000_000 });
        const { db, start } = await createStart(t, database, upstream);
        // A dollar each.
        const asked = { model, input: 'go', background: true, max_output_tokens: 1000 };
        // More than two servers run at once.
        const count = 130;
        const killed = await start({
          limits: { account: { monthly_budget: count } },
          inference: { responses: { max_background: 2 * count } },
        });
        for (let sent = 0; sent < count; sent++) await killed.api.create(asked);
        await assert.rejects(killed.api.create(asked), { code: 'insufficient_quota' });
        killed.child.kill('SIGKILL');
        await killed.ended;

        const { left } = await db
          .selectFrom('response_runs')
          .select(({ fn }) => fn.countAll<string | number>().as('left'))
          .where('runner', 'is', null)
          .executeTakeFirstOrThrow();
        assert(Number(left) > 64, `${left} are queued`);
        const monthly_budget_nano = (Number(left) + 0.5) * 1e9;
        await db.updateTable('accounts').set({ monthly_budget_nano }).execute();
        const heir = await start();
        await assert.rejects(heir.api.create(asked), { code: 'insufficient_quota' });
        heir.child.kill('SIGKILL');
        await heir.ended;
      });
    });
  }
});
