// The audit log and its filters: action, actor and time.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser } from '#test/support/browser.ts';
import { createApiKey, type Dashboard, openDashboard } from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('the audit log', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    const key = await createApiKey(dashboard, 'terraform');
    const added = await fetch(`${dashboard.url}/api/v1/ssh-keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ name: 'laptop' }),
    });
    assert.equal(added.status, 200);
    await page.getByRole('link', { name: 'Audit log' }).click();
  });

  const rows = () => page.getByRole('table', { name: 'Audit log' }).getByRole('row');
  const untilRows = (count: number) =>
    until(`${count} events`, async () => (await rows().count()) === count + 1);

  async function choose(filter: string, option: string) {
    await page.getByRole('combobox', { name: filter, exact: true }).click();
    await page.getByRole('option', { name: option, exact: true }).click();
  }

  test('actions of a key and of its owner are told apart', async () => {
    await rows().nth(1).waitFor();
    await checkAppearance(page, 'audit-log');
    await choose('Actor', 'terraform');
    await untilRows(1);
    assert.match(await rows().nth(1).innerText(), /SSH key added\s+API key “terraform”/);
    await choose('Actor', 'owner@example.com');
    await untilRows(2);
  });

  test('filters combine, and the back button removes them again', async () => {
    await choose('Action', 'User joined');
    await untilRows(1);
    await page.goBack();
    await untilRows(2);
    await page.goBack();
    await untilRows(1);
  });

  test('a period without events says so, and a link keeps the filters', async () => {
    await page.goto(`${dashboard.url}/#/audit-log/when=dates&from=2020-01-01&to=2020-01-02`);
    await page.getByRole('heading', { name: 'No matching events' }).waitFor();
    assert.equal(await page.getByLabel('From').inputValue(), '2020-01-01');
    await page.goto(`${dashboard.url}/#/audit-log/when=1`);
    await rows().nth(1).waitFor();
    assert.equal(await page.getByRole('combobox', { name: 'Time' }).inputValue(), 'Last 24 hours');
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
