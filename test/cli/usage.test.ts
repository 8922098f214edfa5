// millrace usage against a real server after a real request: table, JSON and CSV.

import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { UsageSummary } from '#accounts/usage/schema.ts';
import { model, startPricedModel } from '#test/support/limits/callers.ts';
import { makeFolder, runMillrace, serveMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';

describe('millrace usage', () => {
  let env: Record<string, string>;
  const run = (...args: string[]) => runMillrace(['usage', ...args], { env });

  before(async () => {
    const config = join(makeFolder(), 'millrace.yaml');
    writeFileSync(config, JSON.stringify({ models: await startPricedModel() }));
    const server = await serveMillrace(['--config', config]);
    env = { HOME: makeFolder(), MILLRACE_URL: server.url };
    const link = /(http\S+#\/join\/\S+)/.exec(server.stdout())?.[1] ?? '';
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    assert.equal((await runMillrace(login, { env, input: 'a long enough password\n' })).code, 0);
    const key = /First API key\s+(\S+)/.exec(server.stdout())?.[1];
    const response = await fetch(`${server.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, prompt: 'x', max_tokens: 3, ignore_eos: true }),
    });
    assert.equal(response.status, 200);
    await until('it is counted', async () => (await run()).stdout.includes('$'));
  });

  test('the table groups usage by the label of the key', async () => {
    const { stdout } = await run('--by', 'key', '--step', 'hour');
    const [header, line] = stdout.split('\n');
    assert.match(
      header ?? '',
      /^HOUR +KEY +REQUESTS +ERRORS +CANCELED +TOKENS IN +CACHED +TOKENS OUT +FIRST +COST$/,
    );
    assert.match(line ?? '', /^\d{4}-\d\d-\d\d \d\d:00 +first +1 +0 +0 +\d+ +0 +3 +\d+ ms +\$0\.0/);
  });

  test('JSON and CSV show the same values', async () => {
    const { data } = JSON.parse((await run('--by', 'model', '--json')).stdout) as UsageSummary;
    assert.deepEqual(
      data.map(({ group, requests, completion_tokens }) => [group, requests, completion_tokens]),
      [[model, 1, 3]],
    );
    const csv = await run('--by', 'model', '--csv');
    const [header, line, end] = csv.stdout.split('\r\n');
    assert.match(header ?? '', /^start,group,label,requests,/);
    assert.match(line ?? '', /T00:00:00\.000Z,llama3\.1-8b-instruct,,1,0,0,\d+,3,0,0\.0\d+,\d+/);
    assert.equal(end, '');
  });

  test('wrong usage exits 2, and a request that the server refuses exits 1 and says why', async () => {
    assert.equal((await run('--by', 'color')).code, 2);
    assert.equal((await run('--from', 'whenever')).code, 2);
    for (const format of [[], ['--csv']]) {
      const refused = await run('--from', '500d', ...format);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /400 days/);
    }
    assert.equal((await run('--from', '30d')).code, 0);
  });
});
