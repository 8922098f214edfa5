// The page of one machine on a real sandbox: live graphs, events, boot log, and what is said when it is gone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { checkAppearance, describeInBrowser, settle } from '#test/support/browser.ts';
import {
  type Dashboard,
  launchMachine,
  openDashboard,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { startOutageProxy } from '#test/support/outage-proxy.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('the page of a machine', () => {
  let dashboard: Dashboard;
  let id: string;
  before(async () => {
    dashboard = await openDashboard(
      { config: { cloud: { driver: 'sandbox' } } },
      { viewport: { width: 1280, height: 900 } },
    );
    const launched = await launchMachine(dashboard, 'trainer');
    assert.equal(launched.status(), 200, await launched.text());
    [id] = (await launched.json()).data.instance_ids;
  });
  after(() => terminateMachines(dashboard));

  const graph = (name: string) => dashboard.page.getByRole('group', { name, exact: true });

  test('a row of the list leads to it', async () => {
    const { page } = dashboard;
    await page.goto(`${dashboard.url}/#/machines`);
    await page.getByRole('link', { name: 'trainer', exact: true }).click();
    await page.getByRole('heading', { name: 'trainer' }).waitFor();
    await page.getByText('active', { exact: true }).waitFor();
    assert.ok(page.url().endsWith(`#/machines/${id}`));
  });

  test('graphs are live, and a figure that can’t be measured has the reason', async () => {
    const { page } = dashboard;
    const shown = {
      CPU: /\d%/,
      Memory: /\d (K|M|G)iB\s+of/,
      Disk: /\d (K|M|G)iB\s+of/,
      Network: /\d B\/s/,
    };
    for (const [name, figure] of Object.entries(shown)) {
      await until(`${name} is measured`, async () => {
        const text = await graph(name).innerText();
        return figure.test(text) || /Not available\. [A-Z].+\./.test(text);
      });
    }
    await checkAppearance(page, 'machine-overview');
  });

  test('it says how to connect, what is open and what it costs', async () => {
    const text = await dashboard.page.locator('#main').innerText();
    assert.match(text, /ssh .*ubuntu@\d+\.\d+\.\d+\.\d+/);
    assert.match(text, /tcp 22 from anywhere/);
    assert.match(text, /Cost so far\s+\$\d/);
  });

  test('events and the boot log have tabs with addresses of their own', async () => {
    const { page } = dashboard;
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.getByText('Machine launched').waitFor();
    await page.getByText('Became active').waitFor();
    await page.getByText('By owner@example.com').first().waitFor();
    assert.ok(page.url().endsWith('/events'));
    await checkAppearance(page, 'machine-events');
    await page.getByRole('tab', { name: 'Boot log' }).click();
    await page.locator('pre').waitFor();
    await settle(page);
    await checkAppearance(page, 'machine-boot-log');
  });

  test('while the server is unreachable it is not shown as fine', async () => {
    const proxy = await startOutageProxy(dashboard.url);
    const page = await dashboard.page.context().newPage();
    await page.goto(`${proxy.url}#/machines/${id}/events`);
    await page.getByText('active', { exact: true }).waitFor();
    assert.equal(await page.locator('[data-stale] .status-dot').count(), 0);
    await proxy.cut('refused');
    await page.locator('[data-stale] .status-dot').waitFor();
    await page.close();
    await proxy.close();
  });

  test('a machine that is gone keeps its events', async () => {
    const { page } = dashboard;
    await terminateMachines(dashboard);
    await page.goto(`${dashboard.url}/#/machines/${id}`);
    await page.getByRole('heading', { name: 'This machine is gone' }).waitFor();
    await page.getByText('Machine terminated').waitFor();
    await checkAppearance(page, 'machine-gone');
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
