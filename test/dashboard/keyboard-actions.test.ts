// What a page is for, done by keyboard alone: invitations, firewall rules, the menu of a machine and its terminal. The
// focus never falls back to the top of the page.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, settle } from '#test/support/browser.ts';
import {
  type Dashboard,
  launchMachine,
  openDashboard,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { isFocused, press, reach, waitForFocus } from '#test/support/keyboard.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('actions by keyboard', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard({ config: { cloud: { driver: 'sandbox' } } });
    ({ page } = dashboard);
    const launched = await launchMachine(dashboard, 'typed-machine');
    assert.equal(launched.status(), 200, await launched.text());
  });
  after(() => terminateMachines(dashboard));

  const open = async (path: string) => {
    // The focus starts at the top of a page that was loaded anew.
    await page.goto('about:blank');
    await page.goto(`${dashboard.url}/#/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await settle(page);
  };
  const read = async (path: string) =>
    (await (await page.context().request.get(`${dashboard.url}/${path}`)).json()).data;
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });

  test('an invitation is created for a role, and revoked', async () => {
    await open('team');
    await reach(page, page.getByRole('radio', { name: 'member' }));
    await page.keyboard.press('ArrowDown');
    await press(page, button('Create invitation link'));
    await page.getByLabel(/Invitation link for a new viewer/).waitFor();
    await reach(page, page.getByRole('button', { name: 'Copy', exact: true }));
    const list = page.getByRole('table', { name: 'Open invitations' });
    await press(page, list.getByRole('button', { name: /^Revoke/ }));
    const dialog = page.getByRole('dialog', { name: 'Revoke this invitation?' });
    await press(page, dialog.getByRole('button', { name: 'Revoke' }));
    await page.getByText('No open invitations.').waitFor();
    assert.deepEqual(await read('dashboard/api/invitations'), []);
    await until('the focus is in the page', () =>
      page.evaluate<boolean>('document.activeElement !== document.body'),
    );
  });

  test('a firewall rule is added, and another removed', async () => {
    await open('firewall');
    const rule = (number: number) => page.getByRole('group', { name: `Rule ${number}` });
    await press(page, button('Add rule'));
    await waitForFocus('the new rule', rule(3).getByRole('combobox', { name: 'Protocol' }));
    await page.keyboard.press('Enter');
    await page.getByRole('option', { name: 'udp' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.type('53');
    await press(page, button('Remove rule 3'));
    await waitForFocus('the button', button('Add rule'));
    await press(page, button('Remove rule 1'));
    await waitForFocus('the next rule', button('Remove rule 1'));
    await press(page, button('Save rules'));
    await page.getByText('Rules saved.').waitFor();
    assert.equal((await read('api/v1/firewall-rules')).length, 1);
  });

  /** Opens a menu whose button has the focus, and moves to an item. */
  async function moveTo(item: string): Promise<void> {
    await page.keyboard.press('Enter');
    const target = page.getByRole('menuitem', { name: item });
    await target.waitFor();
    await until(`${item} has the focus`, async () => {
      await page.keyboard.press('ArrowDown');
      return isFocused(target);
    });
  }

  test('a machine is renamed from the menu of its row', async () => {
    await open('machines');
    const row = page.getByRole('row', { name: /typed-machine/ });
    await row.getByText('active', { exact: true }).waitFor();
    const menu = button('Actions for typed-machine');
    const dialog = page.getByRole('dialog');
    await reach(page, menu);
    await moveTo('Boot log');
    await page.keyboard.press('Escape');
    await waitForFocus('the menu’s button', menu);
    await moveTo('Rename');
    await page.keyboard.press('Enter');
    await waitForFocus('the name', dialog.getByLabel('Name'));
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await waitForFocus('the menu’s button', menu);
    await moveTo('Rename');
    await page.keyboard.press('Enter');
    await waitForFocus('the name', dialog.getByLabel('Name'));
    await page.keyboard.press('Control+a');
    await page.keyboard.type('renamed-machine');
    await page.keyboard.press('Enter');
    await waitForFocus('the menu’s button', button('Actions for renamed-machine'));
  });

  test('the terminal is opened, used and left', async () => {
    await open('machines');
    await press(page, page.getByRole('link', { name: 'renamed-machine', exact: true }));
    await page.getByRole('heading', { name: 'renamed-machine', level: 1 }).waitFor();
    await reach(page, page.getByRole('tab', { name: 'Overview' }));
    await page.keyboard.press('ArrowRight');
    await page.getByText('Connected.').waitFor();
    await waitForFocus('the terminal', page.getByLabel('Terminal input'));
    await page.keyboard.type('echo it-is-$((6 * 7))');
    await page.keyboard.press('Enter');
    await until('its output', async () =>
      /it-is-42/.test(await page.locator('.xterm-rows').innerText()),
    );
    await page.keyboard.press('Shift+Escape');
    await waitForFocus('the tab', page.getByRole('tab', { name: 'Terminal' }));
    await page.keyboard.press('Tab');
    await waitForFocus('the terminal', page.getByLabel('Terminal input'));
    await page.keyboard.type('exit');
    await page.keyboard.press('Enter');
    await page.getByText('The shell has ended.').waitFor();
    await press(page, button('Reconnect'));
    await page.getByText('Connected.').waitFor();
    await waitForFocus('the terminal', page.getByLabel('Terminal input'));
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
