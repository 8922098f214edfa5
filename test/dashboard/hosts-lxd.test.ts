// A real LXD daemon, added as a host in the page by the token that its own command line would print.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { joinBy, look, noBrowser, openPage, type Served, serve } from '#test/support/browser.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { makeToken, noLxd } from '#test/support/lxd/lxd-daemon.ts';

describe('an LXD host in the page', { skip: noBrowser || noLxd, timeout: 420_000 }, () => {
  let lxd: Lxd;
  let served: Served;
  let page: Page;
  let complaints: string[];
  before(async () => {
    lxd = await startSmallLxd();
    served = await serve();
    ({ page, complaints } = await openPage({ reducedMotion: 'reduce' }));
    // A daemon answers each of these in a second, or in a minute where others keep the machine busy.
    page.setDefaultTimeout(90_000);
    await joinBy(page, served.setupLink, 'owner@example.com');
  });
  after(() => lxd?.stop());

  const card = () => page.getByRole('region', { name: 'Host rack-1' });

  test('it is added by its token and shows what it has', async () => {
    await page.goto(`${served.url}/#/hosts/new`);
    const dialog = page.getByRole('dialog', { name: 'Add a host' });
    await dialog.getByText('LXD', { exact: true }).click();
    await dialog.getByLabel(/The token/).fill(await makeToken(lxd));
    await dialog.getByLabel('Name', { exact: true }).fill('rack-1');
    await dialog.getByText('Its network, storage and cluster').click();
    await dialog.getByLabel('Network').fill(lxd.network);
    await look(page, 'hosts-lxd-add');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await card().getByText('online').waitFor();
    await card()
      .getByText(/lxd \d/i)
      .waitFor();
    await card()
      .getByText(/^0 of \d+$/)
      .first()
      .waitFor();
    await look(page, 'hosts-lxd');
  });

  test('its check names what was looked at', async () => {
    await page.getByRole('button', { name: 'Check rack-1' }).click();
    const dialog = page.getByRole('dialog', { name: 'Check of “rack-1”' });
    await dialog.getByText('It trusts this server').waitFor();
    await dialog.getByText('It can be reached').waitFor();
    await dialog.getByText('All is well.').waitFor();
    await look(page, 'hosts-lxd-check');
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
    assert.deepEqual(complaints, []);
  });
});
