// Hosts as an owner sees them: their resources, their checks, and adding, draining and removing them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser, findViolations } from '#test/support/browser.ts';
import {
  type Dashboard,
  launchMachine,
  openAs,
  openDashboard,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { startOutageProxy } from '#test/support/outage-proxy.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('hosts', () => {
  let dashboard: Dashboard;
  let page: Page;
  let name: string;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    const { data } = await (
      await page.context().request.get(`${dashboard.url}/dashboard/api/hosts`)
    ).json();
    name = data[0].name;
  });
  after(() => terminateMachines(dashboard));

  const card = () => page.getByRole('region', { name: `Host ${name}` });

  test('the server itself is a host that shows what is in use', async () => {
    await page.getByRole('link', { name: 'Hosts' }).click();
    await card().getByText('online').waitFor();
    await card().getByText('0 machines').waitFor();
    await card().getByText('This host is the server itself.').waitFor();
    const launched = await launchMachine(dashboard);
    assert.ok(launched.ok(), await launched.text());
    await card().getByText('1 machine', { exact: false }).waitFor();
    const used = await card()
      .getByRole('progressbar', { name: /vCPUs used/ })
      .getAttribute('aria-valuenow');
    assert.ok(Number(used) > 0, `${used}% of the vCPUs are in use`);
    await checkAppearance(page, 'hosts');
  });

  test('while the server is unreachable no host is shown as fine', async () => {
    const proxy = await startOutageProxy(dashboard.url);
    const other = await page.context().newPage();
    await other.goto(`${proxy.url}#/hosts`);
    await other
      .getByRole('region', { name: `Host ${name}` })
      .getByText('online')
      .waitFor();
    const toColor = () =>
      other.evaluate<string>(
        "getComputedStyle(document.querySelector('.status-badge .status-dot')).backgroundColor",
      );
    const green = await toColor();
    await proxy.cut('refused');
    await until('it is not green', async () => (await toColor()) !== green);
    await proxy.restore();
    await until('it is green again', async () => (await toColor()) === green);
    await other.close();
    await proxy.close();
  });

  test('a check lists its results', async () => {
    await page.getByRole('button', { name: `Check ${name}` }).click();
    const dialog = page.getByRole('dialog', { name: `Host check of “${name}”` });
    await dialog.getByText(/All checks passed\.|Some checks failed\./).waitFor();
    assert.ok((await dialog.getByRole('listitem').count()) >= 1);
    await checkAppearance(page, 'hosts-check');
    await dialog.getByRole('button', { name: 'Done' }).click();
  });

  test('a drained host gets no machines until it is resumed', async () => {
    await page.getByRole('button', { name: `Drain ${name}` }).click();
    await card().getByText('draining').waitFor();
    assert.equal((await launchMachine(dashboard)).ok(), false);
    await page.getByRole('button', { name: `Resume ${name}` }).click();
    await card().getByText('online').waitFor();
  });

  test('a host is added with a token, and a wrong token is refused with an explanation', async () => {
    await page.getByRole('link', { name: 'Add host' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add host' });
    await dialog.getByText('incus config trust add millrace').waitFor();
    await dialog.getByText('LXD', { exact: true }).click();
    await dialog.getByText('lxc config trust add --name millrace').waitFor();
    await checkAppearance(page, 'hosts-add');
    await dialog.getByLabel(/Paste the token/).fill('not-a-token');
    await dialog.getByLabel('Name', { exact: true }).fill('rack-1');
    await dialog.getByRole('button', { name: 'Add host', exact: true }).click();
    await dialog.locator('[name="token"][aria-invalid="true"]').waitFor();
    assert.deepEqual(await findViolations(page), []);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await dialog.waitFor({ state: 'detached' });
  });

  test('a host that does not respond is offline, also when it is drained, and can be removed', async () => {
    const { request } = page.context();
    const [{ region }] = (await (await request.get(`${dashboard.url}/dashboard/api/hosts`)).json())
      .data;
    const added = await request.post(`${dashboard.url}/dashboard/api/hosts`, {
      data: { name: 'lost', region, url: 'unix:/nonexistent/socket' },
    });
    assert.ok(added.ok(), await added.text());
    const lost = page.getByRole('region', { name: 'Host lost' });
    await lost.getByText('offline').waitFor();
    await page.getByRole('button', { name: 'Drain lost' }).click();
    await lost.getByText('draining').waitFor();
    await lost.getByText('offline').waitFor();
    await page.getByRole('button', { name: 'Resume lost' }).click();
    await lost.getByText('draining').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove lost' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Remove it only if it will never come back.').waitFor();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await lost.waitFor({ state: 'detached' });
  });

  test('a viewer sees hosts but no actions on them', async () => {
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.goto(`${dashboard.url}/#/hosts/new`);
    await viewer.getByRole('region', { name: `Host ${name}` }).waitFor();
    assert.equal(await viewer.getByRole('dialog').count(), 0);
    for (const action of ['Add host', 'Drain', 'Check', 'Remove']) {
      assert.equal(await viewer.getByRole('button', { name: action }).count(), 0, action);
    }
    const path = `${dashboard.url}/dashboard/api/hosts/${name}`;
    const refused = await viewer.context().request.patch(path, { data: { draining: true } });
    assert.equal(refused.status(), 403);
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
