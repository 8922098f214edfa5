// millrace usage against a real server after a real request: table, JSON and CSV.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import type { UsageSummary } from '#accounts/usage/schema.ts';
import type { InstanceTypes, InstanceUsage } from '#cloud/schema.ts';
import { toMoney } from '#lib/text/format.ts';
import { model, startPricedModel } from '#test/support/limits/callers.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

describe('millrace usage', () => {
  let env: Record<string, string>;
  let complete: (maxTokens: number) => Promise<Response>;
  const run = (...args: string[]) => callMillrace(['usage', ...args], { env });

  before(async () => {
    const server = await startTestServer({ config: { models: await startPricedModel() } });
    env = { HOME: makeFolder(), MILLRACE_URL: server.url };
    const link = server.setupLink ?? '';
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    assert.equal((await callMillrace(login, { env, input: 'a long enough password\n' })).code, 0);
    complete = (max_tokens) =>
      fetch(`${server.url}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, prompt: 'x', max_tokens, ignore_eos: true, stream: true }),
      });
    assert.match(await (await complete(3)).text(), /\[DONE\]/);
    await until('it is counted', async () => (await run()).stdout.includes('$'));
  });

  test('the table groups usage by the label of the key', async () => {
    const { stdout } = await run('--by', 'key', '--step', 'hour');
    const [header, line] = stdout.split('\n');
    assert.match(
      header ?? '',
      /^HOUR +KEY +REQUESTS +ERRORS +CANCELED +TOKENS IN +CACHED +TOKENS OUT +FIRST +COST$/,
    );
    assert.match(
      line ?? '',
      /^\d{4}-\d\d-\d\d \d\d:00 +first +1 +0 +0 +\d+ +0 +3 +[\d.]+ m?s +\$0\.0/,
    );
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

  test('a request is listed, filtered, and shown by the first characters of its id', async () => {
    const requests = (...args: string[]) => callMillrace(['requests', ...args], { env });
    const { stdout } = await requests(
      'list',
      '--model',
      model,
      '--key',
      'first',
      '--status',
      'done',
    );
    const [header, line] = stdout.split('\n');
    assert.match(
      header ?? '',
      /^ID +TIME +MODEL +SENT BY +STATUS +TOKENS IN +TOKENS OUT +TOOK +COST$/,
    );
    const id = line?.split(' ')[0] ?? '';
    assert.match(id, /^[0-9a-f]{32}$/);
    const shown = await requests('show', id.slice(0, 6));
    assert.match(shown.stdout, new RegExp(`^Id +${id}\n`));
    assert.match(shown.stdout, /^Output tokens +3$/m);
    assert.equal(JSON.parse((await requests('show', id, '--json')).stdout).id, id);
    assert.deepEqual(
      JSON.parse((await requests('list', '--status', 'failed', '--json')).stdout),
      [],
    );
    const missing = await requests('show', 'ffff');
    assert.deepEqual(
      [missing.code, missing.stderr.includes('There is no request ffff.')],
      [1, true],
    );
  });

  test('usage, limits and status have one total for models and machines, as the dashboard', async () => {
    const read = async (...words: string[]) => {
      const { code, stdout, stderr } = await callMillrace([...words, '--json'], { env });
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    const types: InstanceTypes = await read('instances', 'types');
    const [dearest] = Object.values(types)
      .filter((type) => type.regions_with_capacity_available.length > 0)
      .map((type) => type.instance_type)
      .sort((one, other) => other.price_cents_per_hour - one.price_cents_per_hour);
    await callMillrace(['ssh-keys', 'generate', 'laptop'], { env });
    const launch = ['instances', 'launch', dearest?.name ?? '', '--name', 'costly', '--wait'];
    const launched = await callMillrace(launch, { env });
    assert.equal(launched.code, 0, launched.stderr);
    await until('it costs something', async () => (await read('usage')).total.machines > 0);
    await callMillrace(['instances', 'terminate', 'costly', '--yes'], { env });
    await until('it is gone', async () => (await read('instances', 'list')).length === 0);

    const { total } = await read('usage');
    assert(total.models > 0 && total.machines > 0, JSON.stringify(total));
    const limits = await read('limits', 'show');
    const { details } = await read('status');
    for (const one of [limits.total, details.spend])
      assert.deepEqual([one.models, one.machines], [total.models, total.machines]);
    const { data } = await read('usage', '--by', 'machine');
    assert.deepEqual(
      data.map(({ name, cents }: InstanceUsage) => [name, cents / 100]),
      [['costly', total.machines]],
    );
    const [, sum = ''] = /\n\nTotal (.*)\n$/.exec((await run()).stdout) ?? [];
    assert(sum.includes(`${toMoney(total.models + total.machines)}: `), sum);
    const shown = await callMillrace(['limits', 'show'], { env });
    assert(shown.stdout.includes(` ${sum}\n`), shown.stdout);
  });

  test('a request that no backend received is not shown as served', async () => {
    const { status, headers } = await complete(10_000_000);
    assert.equal(status, 400);
    const show = (id: string) => callMillrace(['requests', 'show', id], { env });
    const shown = await until('it is counted', async () => {
      const { code, stdout } = await show(headers.get('x-request-id') ?? '');
      return code === 0 ? stdout : undefined;
    });
    assert.match(shown, /^Served by +-$/m);
    assert.match(shown, /^Backend +-$/m);
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
