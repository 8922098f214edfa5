// A real LXD daemon is added as a host with the token that its command line would print.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser, noBrowser } from '#test/support/browser.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import { type Dashboard, openDashboard } from '#test/support/dashboard.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { makeToken, noLxd } from '#test/support/lxd/lxd-daemon.ts';

describeInBrowser(
  'an LXD host in the dashboard',
  () => {
    let lxd: Lxd;
    let dashboard: Dashboard;
    let page: Page;
    before(async () => {
      lxd = await startSmallLxd();
      dashboard = await openDashboard();
      ({ page } = dashboard);
      // The daemon takes a second for each action, or up to a minute on a busy machine.
      page.setDefaultTimeout(90_000);
    });
    after(() => lxd?.stop());

    const card = () => page.getByRole('region', { name: 'Host rack-1' });

    test('it is added with its token and shows its resources', async () => {
      await page.goto(`${dashboard.url}/#/hosts/new`);
      const dialog = page.getByRole('dialog', { name: 'Add host' });
      await dialog.getByText('LXD', { exact: true }).click();
      await dialog.getByLabel(/Paste the token/).fill(await makeToken(lxd));
      await dialog.getByLabel('Name', { exact: true }).fill('rack-1');
      await dialog.getByText('Advanced: network, storage and cluster').click();
      await dialog.getByLabel('Network').fill(lxd.network);
      await checkAppearance(page, 'hosts-lxd-add');
      await dialog.getByRole('button', { name: 'Add host', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await card().getByText('online').waitFor();
      await card()
        .getByText(/lxd \d/i)
        .waitFor();
      await card()
        .getByText(/^0 of \d+$/)
        .first()
        .waitFor();
      await checkAppearance(page, 'hosts-lxd');
    });

    test('its check lists what was checked', async () => {
      await page.getByRole('button', { name: 'Check rack-1' }).click();
      const dialog = page.getByRole('dialog', { name: 'Host check of “rack-1”' });
      await dialog.getByText('Host trusts this server').waitFor();
      await dialog.getByText('Host is reachable').waitFor();
      await dialog.getByText('All checks passed.').waitFor();
      await checkAppearance(page, 'hosts-lxd-check');
      await dialog.getByRole('button', { name: 'Done' }).click();
    });

    test('it is drained, resumed and removed', async () => {
      await page.getByRole('button', { name: 'Drain rack-1' }).click();
      await card().getByText('draining').waitFor();
      await page.getByRole('button', { name: 'Resume rack-1' }).click();
      await card().getByText('online').waitFor();
      await page.getByRole('button', { name: 'Remove rack-1' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
      await card().waitFor({ state: 'detached' });
      assert.deepEqual(dashboard.consoleErrors, []);
    });
  },
  { skip: noBrowser || noLxd, timeout: 420_000 },
);
