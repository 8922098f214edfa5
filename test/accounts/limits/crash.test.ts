// A server killed with -9 and started again enforces the budget that its rows say, to the nano-dollar.

import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { openDatabase } from '#db/open.ts';
import { createDatabase, stopOwnPostgres } from '#test/support/databases.ts';
import {
  brief,
  endless,
  type KeyView,
  readError,
  startPricedModel,
  worstCost,
} from '#test/support/limits/callers.ts';
import {
  makeFolder,
  type RunningProcess,
  readFirstSecret,
  serveMillrace,
} from '#test/support/process.ts';
import { cookieOf, password } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const asJson = { 'content-type': 'application/json' };
const apiKey = `secret_test_${'0'.repeat(32)}.${'a'.repeat(32)}`;
const nano = (dollars: number) => Math.round(dollars * 1e9);

describe('a budget across kill -9', () => {
  test('counts finished and running requests, and only those with a row', async () => {
    const options = ['--log-level', 'silent', '--config', await writeConfig()];
    const first = await serveMillrace(options);
    const cookie = await join(
      first.url,
      readFirstSecret(first.stdout(), 'Set-up link').split('/').at(-1) ?? '',
    );
    const budget = (4 * worstCost(endless)) / 1e9;
    const made = await fetch(`${first.url}/dashboard/api/api-keys`, {
      method: 'POST',
      headers: { cookie, ...asJson },
      body: JSON.stringify({ label: 'limited', limits: { monthly_budget: budget } }),
    });
    const { id, key } = (await made.json()) as KeyView;
    const complete = (url: string, body: object) =>
      fetch(`${url}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, ...asJson },
        body: JSON.stringify(body),
      });
    const view = async (url: string) => {
      const response = await fetch(`${url}/dashboard/api/api-keys`, { headers: { cookie } });
      const { data } = (await response.json()) as { data: KeyView[] };
      return data.find((row) => row.id === id) as KeyView;
    };

    for (let count = 0; count < 5; count++) await (await complete(first.url, brief)).text();
    const running = await complete(first.url, endless);
    const cut = running.text().catch(() => 'cut');
    await until(
      'the five are in the books',
      async () => (await view(first.url)).spend.requests === 5,
    );
    await until('the running one is too, as far as it is', () => hasRunning(first.url, cookie));
    first.child.kill('SIGKILL');
    await first.ended;
    assert.equal(await cut, 'cut');

    const second = await serveMillrace([...options, '--data-dir', first.dataDir]);
    const { spend } = await until('what ran is closed', async () => {
      const row = await view(second.url);
      return row.spend.requests === 6 ? row : null;
    });
    // The look at the database that this is held against is at most a second old.
    const error = await until('a request over what is left is refused', async () => {
      const over = { ...endless, n: 5 };
      const response = await complete(second.url, over);
      assert.equal(response.status, 429);
      const refusal = await readError(response);
      return refusal.message.includes(`$${toText(nano(budget) - nano(spend.cost))} left`)
        ? refusal
        : null;
    });
    assert.equal(error.code, 'insufficient_quota');
    assert.equal((await complete(second.url, brief)).status, 200);
  });

  test('on PostgreSQL counts what a dead server left running before it is closed', async (context) => {
    const { url: databaseUrl, drop } = await createDatabase('postgres');
    assert(databaseUrl !== null);
    const db = await openDatabase({ url: databaseUrl, poolSize: 1, dataDir: makeFolder() });
    context.after(async () => {
      await db.destroy();
      await drop();
      await stopOwnPostgres();
    });
    const config = await writeConfig();
    const options = ['--log-level', 'silent', '--config', config, '--database-url', databaseUrl];
    const start = () => serveMillrace(options, { MILLRACE_API_KEY: apiKey });
    const ask = ({ url }: RunningProcess) =>
      fetch(`${url}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, ...asJson },
        body: JSON.stringify(endless),
      });
    const read = async () => {
      const [row, ...others] = await db.selectFrom('usage_requests').selectAll().execute();
      assert.deepEqual(others, []);
      return row;
    };
    const budget = worstCost(endless) + 1;

    const first = await start();
    for (const table of ['accounts', 'api_keys'] as const) {
      await db.updateTable(table).set({ monthly_budget_nano: budget }).execute();
    }
    const running = await ask(first);
    assert.equal(running.status, 200);
    const cut = running.text().catch(() => 'cut');
    await until('its row has a cost', async () => ((await read())?.cost_nano ?? 0) > 1);
    first.child.kill('SIGKILL');
    await first.ended;
    assert.equal(await cut, 'cut');
    const cost = (await read())?.cost_nano ?? 0;

    const second = await start();
    const refused = await ask(second);
    assert.equal(refused.status, 429);
    const { message, code } = await readError(refused);
    assert.equal(code, 'insufficient_quota');
    assert(message.includes(`$${toText(budget - cost)} left`), message);
    assert.equal((await db.selectFrom('spend').selectAll().execute()).length, 0);
    second.child.kill('SIGKILL');
    await second.ended;
  });
});

async function writeConfig(): Promise<string> {
  const file = path.join(makeFolder(), 'millrace.yaml');
  writeFileSync(file, JSON.stringify({ models: await startPricedModel() }));
  return file;
}

async function join(url: string, token: string): Promise<string> {
  const response = await fetch(`${url}/dashboard/api/join`, {
    method: 'POST',
    headers: asJson,
    body: JSON.stringify({ token, email: 'owner@example.com', password }),
  });
  assert.equal(response.status, 200);
  return cookieOf(response);
}

async function hasRunning(url: string, cookie: string): Promise<boolean> {
  const response = await fetch(`${url}/dashboard/api/usage/requests?status=running`, {
    headers: { cookie },
  });
  const { data } = (await response.json()) as { data: { completion_tokens: number }[] };
  return data.some(({ completion_tokens }) => completion_tokens > 0);
}

const toText = (amount: number) => (amount / 1e9).toFixed(9).replace(/(\.\d\d\d*?)0+$/, '$1');
