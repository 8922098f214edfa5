// Forgotten passwords, the creators of keys, removing a member with their keys, and lists of many pages.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, openPage } from '#test/support/browser.ts';
import {
  type Dashboard,
  openAs,
  openDashboard,
  signInAsOwner,
  signOut,
  waitForHome,
} from '#test/support/dashboard.ts';
import { callMillrace, makeFolder, runMillrace } from '#test/support/process.ts';

describeInBrowser('people and their keys', () => {
  let dashboard: Dashboard;
  let owner: Page;
  before(async () => {
    dashboard = await openDashboard();
    owner = dashboard.page;
  });

  const createKey = (page: Page, label: string) =>
    page.context().request.post(`${dashboard.url}/dashboard/api/api-keys`, { data: { label } });

  test('a reset link sets a new password and signs in, once', async () => {
    const { dataDir, url } = dashboard;
    const args = ['users', 'reset', 'owner@example.com', '--data-dir', dataDir, '--url', url];
    const { stdout: link } = await runMillrace(args);
    const { page } = await openPage();
    await page.goto(link.trim());
    await page.getByText('Choose a new password for owner@example.com.').waitFor();
    await page.getByLabel('New password').fill('a new and better one');
    await page.getByRole('button', { name: 'Set password' }).click();
    await waitForHome(page);
    await page.goto(link.trim());
    await page.reload();
    await page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
    await owner.reload();
    await signInAsOwner(owner, 'a new and better one');
    await waitForHome(owner);
  });

  test('a session of the CLI is listed as one', async () => {
    const signedIn = await callMillrace(
      ['login', '--url', dashboard.url, '--email', 'owner@example.com'],
      { env: { HOME: makeFolder() }, input: 'a new and better one\n' },
    );
    assert.equal(signedIn.code, 0, signedIn.stderr);
    await owner.goto(`${dashboard.url}/#/team`);
    await owner.getByRole('row', { name: /^Millrace CLI/ }).waitFor();
  });

  test('a member sees who created each key, and edits only their own', async () => {
    const member = await openAs(dashboard, 'member');
    await createKey(member, 'hers');
    await member.goto(`${dashboard.url}/#/api-keys`);
    // The home page has loaded the list before, and would ask again after 10 seconds.
    await member.reload();
    const row = (name: RegExp) => member.getByRole('row', { name });
    await row(/hers.*by member@example\.com/s).waitFor();
    await row(/first.*by the server/s).waitFor();
    assert.equal(await member.getByRole('link', { name: 'Edit hers' }).count(), 1);
    assert.equal(await member.getByRole('link', { name: 'Edit first' }).count(), 0);
    assert.equal(await member.getByRole('button', { name: 'Revoke first' }).count(), 0);
    await signOut(member);
  });

  test('a choice to keep keys is forgotten when the dialog is cancelled', async () => {
    await owner.goto(`${dashboard.url}/#/team`);
    await owner.reload();
    const open = () => owner.getByRole('button', { name: 'Remove member@example.com' }).click();
    const choice = owner.getByRole('checkbox', { name: 'Revoke the API key they created' });
    await open();
    await choice.uncheck();
    await owner.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await choice.waitFor({ state: 'detached' });
    await open();
    assert.equal(await choice.isChecked(), true);
    await owner.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  });

  test('removing a member offers to revoke their keys, which is the default', async () => {
    await owner.goto(`${dashboard.url}/#/team`);
    await owner.getByRole('button', { name: 'Remove member@example.com' }).click();
    const choice = owner.getByRole('checkbox', { name: 'Revoke the API key they created' });
    assert.equal(await choice.isChecked(), true);
    await owner.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await owner.getByText('member@example.com was removed.').waitFor();
    await owner.goto(`${dashboard.url}/#/api-keys`);
    await owner.getByRole('row', { name: /first/ }).waitFor();
    assert.equal(await owner.getByRole('row', { name: /hers/ }).count(), 0);
  });

  test('a person who leaves is signed out and told so', async () => {
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.goto(`${dashboard.url}/#/team`);
    await viewer.getByRole('button', { name: 'Leave viewer@example.com' }).click();
    await viewer.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
    await viewer.getByText('You have left the account.').waitFor();
    await viewer.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  test('more than a page of keys can be loaded and searched', async () => {
    for (let n = 0; n < 60; n++) await createKey(owner, `program ${n}`);
    await owner.reload();
    const rows = owner.getByRole('table', { name: 'API keys' }).getByRole('row');
    await owner.getByRole('row', { name: /program 59/ }).waitFor();
    assert.equal(await rows.count(), 51, 'a page and the heading');
    await owner.getByRole('button', { name: 'Load more' }).click();
    await owner.getByRole('row', { name: /first/ }).waitFor();
    await owner.reload();
    await owner.getByLabel('Search').fill('FIRST');
    await owner.getByRole('row', { name: /first/ }).waitFor();
    await owner.getByRole('row', { name: /program 59/ }).waitFor({ state: 'detached' });
  });
});
