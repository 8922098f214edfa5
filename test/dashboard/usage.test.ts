// The usage page, with real requests and a real machine: chart, tables, filters and CSV files.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser } from '#test/support/browser.ts';
import {
  addBackends,
  createApiKey,
  type Dashboard,
  launchMachine,
  openDashboard,
  sendChat,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

const models = ['llama3.1-8b-instruct', 'llama3.2-3b-instruct'] as const;

describeInBrowser('usage', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    await addBackends(dashboard, models);
  });
  after(() => terminateMachines(dashboard));

  const open = (view: string) => page.goto(`${dashboard.url}/#/usage${view}`);
  const totals = () => page.getByRole('table', { name: 'Totals' });

  test('without usage the page says what it will show', async () => {
    await open('');
    await page.getByRole('heading', { name: 'No usage in this period' }).waitFor();
    await open('/tab=requests');
    await page.getByRole('heading', { name: 'No requests yet' }).waitFor();
  });

  test('requests are charted and added up by model', async () => {
    const [first, second] = [
      await createApiKey(dashboard, 'importer'),
      await createApiKey(dashboard, '=reports'),
    ];
    for (const key of [first, first, second]) {
      assert.equal(
        (await sendChat(dashboard.url, key, { model: models[0], stream: true })).status,
        200,
      );
    }
    assert.equal((await sendChat(dashboard.url, second, { model: models[1] })).status, 200);
    await until('the requests are counted', async () => {
      await open('/by=none');
      await page.reload();
      await page.getByRole('tab', { name: 'Over time' }).waitFor();
      return /4\s*$|Requests\s*4/.test(await page.locator('.facts').innerText());
    });
    await open('/range=24h');
    const row = await totals()
      .getByRole('row', { name: new RegExp(models[0]) })
      .innerText();
    assert.match(row, /^\S+\s+3\s+0\s+0\s/);
    assert.match(row, /\$0\.0\d+/);
    await page.getByRole('img', { name: /Bar chart of tokens over time/ }).waitFor();
    const bars = page.locator('.recharts-bar-rectangle path');
    assert.ok((await bars.count()) >= 2, 'no bars');
    await checkAppearance(page, 'usage-by-model');
  });

  test('every time range can be chosen on a phone', async () => {
    const wide = page.viewportSize() ?? { width: 1280, height: 800 };
    await page.setViewportSize({ width: 390, height: 780 });
    const box = await page.getByText('Custom…').boundingBox();
    assert.ok(box !== null && box.x + box.width <= 390, JSON.stringify(box));
    await page.setViewportSize(wide);
  });

  test('the numbers are the server’s, and the bars are proportional to them', async () => {
    await open('/range=7d');
    await page.getByRole('heading', { name: 'By day' }).waitFor();
    const response = await page
      .context()
      .request.get(`${dashboard.url}/dashboard/api/usage?by=model&step=day`);
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

  test('usage is grouped by key, and the back button undoes it', async () => {
    await page.getByRole('combobox', { name: 'Group by' }).click();
    await page.getByRole('option', { name: 'API key' }).click();
    const row = await totals()
      .getByRole('row', { name: /importer/ })
      .innerText();
    assert.match(row, /^importer\s+2\s/);
    await page.getByRole('combobox', { name: 'Metric' }).click();
    await page.getByRole('option', { name: 'Cost' }).click();
    await page.getByRole('img', { name: /Bar chart of cost over time/ }).waitFor();
    await page.goBack();
    await page.getByRole('img', { name: /Bar chart of tokens over time/ }).waitFor();
    await page.goBack();
    await totals()
      .getByRole('row', { name: new RegExp(models[1]) })
      .waitFor();
  });

  test('the CSV file has the same numbers, and no label becomes a formula', async () => {
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

  test('links written by hand work', async () => {
    await open('?by=key');
    await totals()
      .getByRole('row', { name: /importer/ })
      .waitFor();
    await open('/requests');
    await page.getByRole('table', { name: 'Requests' }).waitFor();
  });

  test('single requests are listed and filtered', async () => {
    await open('/tab=requests');
    const rows = page.getByRole('table', { name: 'Requests' }).getByRole('row');
    await until('four requests', async () => (await rows.count()) === 5);
    await checkAppearance(page, 'usage-requests');
    await page.getByRole('combobox', { name: 'Model' }).click();
    await page.getByRole('option', { name: models[1] }).click();
    await until('one request', async () => (await rows.count()) === 2);
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download CSV (30 days)' }).click();
    const text = (await (await (await downloading).createReadStream()).toArray()).join('');
    assert.equal(text.trim().split('\r\n').length, 2, 'the file has the rows of the list');
    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: 'failed' }).click();
    await page.getByRole('heading', { name: 'No matching requests' }).waitFor();
    await page.goBack();
    await until('one request again', async () => (await rows.count()) === 2);
  });

  test('hours and cost of machines are charted too', async () => {
    const launch = await launchMachine(dashboard, 'counted');
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
    await checkAppearance(page, 'usage-by-machine');
  });

  test('a custom range accepts its dates in either order', async () => {
    await open('/range=custom');
    await page.getByLabel('From').fill('2026-03-05');
    await page.getByLabel('To', { exact: true }).fill('2026-03-01');
    await page.getByRole('button', { name: 'Apply' }).click();
    await until('the range is in the address', async () =>
      page.url().includes('from=2026-03-01&to=2026-03-05'),
    );
    await page.getByRole('heading', { name: 'No usage in this period' }).waitFor();
  });

  test('the home page and the usage page show the same totals', async () => {
    await terminateMachines(dashboard);
    await page.goto(`${dashboard.url}/#/`);
    await page.reload();
    const tile = (name: string) => page.locator('.tile', { hasText: name });
    const value = (name: string) => tile(name).locator('.tile-value').innerText();
    const cost = await value('Cost this month');
    const month = async (name: string) =>
      /([\d,]+) this month/.exec(await tile(name).innerText())?.[1];
    const requests = await month('Requests per second');
    const tokens = await month('Tokens in 24 hours');
    const [failed] = (await value('Failed in 24 hours')).split(' ');
    await page.getByRole('link', { name: cost, exact: true }).click();
    const facts = await page.locator('.facts').innerText();
    const fact = (name: string) => new RegExp(`${name}\\s+(\\S+)`).exec(facts)?.[1] ?? '';
    assert.equal(fact('Total cost'), cost);
    assert.notEqual(fact('Machines'), '$0.00');
    assert.equal(fact('Requests'), requests);
    assert.equal(fact('Failed'), failed);
    const toNumber = (text: string | undefined) => Number(text?.replaceAll(',', ''));
    const sum = toNumber(fact('Input tokens')) + toNumber(fact('Output tokens'));
    assert.equal(sum, toNumber(tokens));
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
