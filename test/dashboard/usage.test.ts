// Usage as a person looks at it: real requests and a real machine, plotted, in tables, and as files.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  ask,
  endMachines,
  joinBy,
  look,
  makeKey,
  noBrowser,
  openPage,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';
import { until } from '#test/support/until.ts';

const models = ['llama3.1-8b-instruct', 'llama3.2-3b-instruct'] as const;

describe('usage', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  let page: Page;
  before(async () => {
    served = await serve();
    watched = await openPage({ reducedMotion: 'reduce' });
    ({ page } = watched);
    await joinBy(page, served.setupLink, 'owner@example.com');
  });
  after(() => endMachines(page, served.url));

  const open = (view: string) => page.goto(`${served.url}/#/usage${view}`);
  const totals = () => page.getByRole('table', { name: 'In total' });

  test('before anything was used the page says what will be there', async () => {
    await open('');
    await page.getByRole('heading', { name: 'Nothing was used in this time' }).waitFor();
    await open('/tab=requests');
    await page.getByRole('heading', { name: 'No requests yet' }).waitFor();
  });

  test('requests are plotted and added up by model', async () => {
    const [first, second] = [
      await makeKey(page, served.url, 'importer'),
      await makeKey(page, served.url, '=reports'),
    ];
    for (const key of [first, first, second]) {
      assert.equal((await ask(served.url, key, { model: models[0], stream: true })).status, 200);
    }
    assert.equal((await ask(served.url, second, { model: models[1] })).status, 200);
    await until('the requests are added up', async () => {
      await open('/by=none');
      await page.reload();
      await page.getByRole('tab', { name: 'Over time' }).waitFor();
      return /4\s*$|Requests\s*4/.test(await page.locator('.totals').innerText());
    });
    await open('/range=24h');
    const row = await totals()
      .getByRole('row', { name: new RegExp(models[0]) })
      .innerText();
    assert.match(row, /^\S+\s+3\s+0\s+0\s/);
    assert.match(row, /\$0\.0\d+/);
    await page.getByRole('img', { name: /Bars of tokens over time/ }).waitFor();
    const bars = page.locator('.recharts-bar-rectangle path');
    assert.ok((await bars.count()) >= 2, 'no bars');
    await look(page, 'usage-by-model');
  });

  test('the numbers are the server’s, and the plot’s height follows them', async () => {
    await open('/range=7d');
    await page.getByRole('heading', { name: 'Day by day' }).waitFor();
    const response = await page
      .context()
      .request.get(`${served.url}/dashboard/api/usage?by=model&step=day`);
    const { data } = (await response.json()) as {
      data: { group: string; prompt_tokens: number; completion_tokens: number }[];
    };
    for (const { group, prompt_tokens, completion_tokens } of data) {
      const row = await totals()
        .getByRole('row', { name: new RegExp(group) })
        .innerText();
      assert.ok(row.includes(prompt_tokens.toLocaleString('en')), row);
      assert.ok(row.includes(completion_tokens.toLocaleString('en')), row);
    }
    const boxes = await Promise.all(
      (await page.locator('.recharts-bar-rectangle path').all()).map((bar) => bar.boundingBox()),
    );
    const heights = boxes.map((box) => box?.height ?? 0).filter((height) => height > 0);
    const tokens = data.map((one) => one.prompt_tokens + one.completion_tokens);
    const shareOfMost = (values: number[]) =>
      Math.max(...values) / values.reduce((total, value) => total + value, 0);
    const difference = Math.abs(shareOfMost(heights) - shareOfMost(tokens));
    assert.ok(difference < 0.02, `heights ${heights} for ${tokens} tokens`);
  });

  test('the same is grouped by key; the back button undoes it', async () => {
    await page.getByRole('combobox', { name: 'By' }).click();
    await page.getByRole('option', { name: 'API key' }).click();
    const row = await totals()
      .getByRole('row', { name: /importer/ })
      .innerText();
    assert.match(row, /^importer\s+2\s/);
    await page.getByRole('combobox', { name: 'Plot' }).click();
    await page.getByRole('option', { name: 'Cost' }).click();
    await page.getByRole('img', { name: /Bars of cost over time/ }).waitFor();
    await page.goBack();
    await page.getByRole('img', { name: /Bars of tokens over time/ }).waitFor();
    await page.goBack();
    await totals()
      .getByRole('row', { name: new RegExp(models[1]) })
      .waitFor();
  });

  test('the file has the same numbers, and no label in it becomes a formula', async () => {
    await open('/by=key&range=24h');
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download CSV' }).click();
    const file = await downloading;
    const text = (await (await file.createReadStream()).toArray()).join('');
    const [head, ...lines] = text.trim().split('\r\n');
    assert.match(head ?? '', /^start,group,label,requests,/);
    assert.equal(lines.length, 2);
    assert.ok(text.includes(",'=reports,2,"), text);
  });

  test('single requests are listed and narrowed down', async () => {
    await open('/tab=requests');
    const rows = page.getByRole('table', { name: 'Requests' }).getByRole('row');
    await until('four requests', async () => (await rows.count()) === 5);
    await look(page, 'usage-requests');
    await page.getByRole('combobox', { name: 'Model' }).click();
    await page.getByRole('option', { name: models[1] }).click();
    await until('one request', async () => (await rows.count()) === 2);
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download 30 days as CSV' }).click();
    const text = (await (await (await downloading).createReadStream()).toArray()).join('');
    assert.equal(text.trim().split('\r\n').length, 2, 'the file holds what the list shows');
    await page.getByRole('combobox', { name: 'How it went' }).click();
    await page.getByRole('option', { name: 'failed' }).click();
    await page.getByRole('heading', { name: 'No such requests' }).waitFor();
    await page.goBack();
    await until('the one again', async () => (await rows.count()) === 2);
  });

  test('a machine’s hours and cost are plotted too', async () => {
    const { request } = page.context();
    const key = `${served.url}/api/v1/ssh-keys`;
    assert.ok((await request.post(key, { data: { name: 'laptop' } })).ok());
    const types = await (await request.get(`${served.url}/api/v1/instance-types`)).json();
    const offer = Object.values(types.data).find(
      (one) =>
        (one as { regions_with_capacity_available: unknown[] }).regions_with_capacity_available[0],
    ) as { instance_type: { name: string }; regions_with_capacity_available: { name: string }[] };
    const launch = await request.post(`${served.url}/api/v1/instance-operations/launch`, {
      data: {
        name: 'counted',
        instance_type_name: offer.instance_type.name,
        region_name: offer.regions_with_capacity_available[0]?.name,
        ssh_key_names: ['laptop'],
      },
    });
    assert.ok(launch.ok(), await launch.text());
    await open('/by=machine&metric=hours&range=24h');
    await page.reload();
    const row = totals().getByRole('row', { name: /counted/ });
    await row.waitFor();
    assert.match(await row.innerText(), /counted\s+0\.\d+\s+\$\d/);
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const text = (await (await (await downloading).createReadStream()).toArray()).join('');
    assert.match(text, /^start,machine_id,machine,hours,cost_usd\r\n\S+,counted,0\.\d+,/);
    await look(page, 'usage-by-machine');
  });

  test('dates are chosen, in whichever order they are given', async () => {
    await open('/range=custom');
    await page.getByLabel('From').fill('2026-03-05');
    await page.getByLabel('To', { exact: true }).fill('2026-03-01');
    await page.getByRole('button', { name: 'Show' }).click();
    await until('in the address', async () => page.url().includes('from=2026-03-01&to=2026-03-05'));
    await page.getByRole('heading', { name: 'Nothing was used in this time' }).waitFor();
  });

  test('the first page says what the month came to', async () => {
    await page.goto(served.url);
    await page.getByText(/This month/).waitFor();
    await page.getByRole('link', { name: '1 machine', exact: true }).waitFor();
    await page
      .getByRole('img', { name: /Requests on each of the last seven days: .*4$/ })
      .waitFor();
    await look(page, 'home-used');
  });

  test('nothing was forbidden by the policy and nothing broke', () => {
    assert.deepEqual(watched.complaints, []);
  });
});
