// Invitations, and what each role sees and may do.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, openPage } from '#test/support/browser.ts';
import {
  type Dashboard,
  joinWith,
  openDashboard,
  password,
  signInAsOwner,
  signOut,
  waitForHome,
} from '#test/support/dashboard.ts';

describeInBrowser('the team', () => {
  let dashboard: Dashboard;
  let owner: Page;
  let viewer: Page;
  before(async () => {
    dashboard = await openDashboard({}, {});
    owner = dashboard.page;
    await owner.getByRole('link', { name: 'Team', exact: true }).click();
    await owner.getByRole('radio', { name: 'viewer' }).check();
    await owner.getByRole('button', { name: 'Create invitation link' }).click();
    const link = await owner.getByLabel(/Invitation link for a new viewer/).innerText();
    viewer = (await openPage()).page;
    await viewer.goto(link);
    await viewer.getByRole('heading', { name: 'Join as viewer' }).waitFor();
    await joinWith(viewer, link, 'viewer@example.com');
  });

  /** The status of a request that the page sends with its cookie. */
  const status = (page: Page, method: string, path: string, body?: unknown) =>
    page.evaluate(
      async ([method, path, body]) => {
        const json = { headers: { 'content-type': 'application/json' }, body: body as string };
        const response = await fetch(path as string, {
          method: method as string,
          ...(body === null ? {} : json),
        });
        return response.status;
      },
      [method, path, body === undefined ? null : JSON.stringify(body)],
    );

  test('an invited user joins with the role of the invitation', async () => {
    await owner.reload();
    const people = owner.getByRole('table', { name: 'People' });
    await people.getByRole('row', { name: /viewer@example\.com/ }).waitFor();
    const role = people.getByRole('combobox', { name: 'Role of viewer@example.com' });
    assert.equal(await role.inputValue(), 'Viewer');
  });

  test('a viewer sees no action that changes anything', async () => {
    await viewer.goto(`${dashboard.url}/#/api-keys`);
    await viewer.getByRole('row', { name: /first/ }).waitFor();
    assert.equal(await viewer.getByRole('link', { name: 'Create API key' }).count(), 0);
    assert.equal(await viewer.getByRole('button', { name: /Revoke/ }).count(), 0);
    assert.equal(await viewer.getByRole('link', { name: 'Playground' }).count(), 0);
    await viewer.goto(`${dashboard.url}/#/api-keys/new`);
    await viewer.getByRole('row', { name: /first/ }).waitFor();
    assert.equal(await viewer.getByRole('dialog').count(), 0);
    await viewer.getByRole('link', { name: 'Team' }).click();
    await viewer.getByRole('table', { name: 'People' }).waitFor();
    assert.equal(await viewer.getByRole('heading', { name: 'Invitations' }).count(), 0);
    assert.equal(await viewer.getByRole('button', { name: /Remove/ }).count(), 0);
  });

  test('the server refuses viewers what the page does not offer', async () => {
    const key = { label: 'sneaky' };
    assert.equal(await status(viewer, 'POST', '/dashboard/api/api-keys', key), 403);
    assert.equal(await status(viewer, 'POST', '/api/v1/ssh-keys', { name: 'sneaky' }), 403);
    assert.equal(await status(viewer, 'GET', '/dashboard/api/invitations'), 403);
    const terminal = `/dashboard/api/instances/${'0'.repeat(32)}/terminal?columns=80&rows=24`;
    assert.equal(await status(viewer, 'GET', terminal), 403);
    assert.equal(await status(viewer, 'GET', '/dashboard/api/api-keys'), 200);
  });

  test('an owner makes a viewer a member, who can then create keys', async () => {
    await owner.getByRole('combobox', { name: 'Role of viewer@example.com' }).click();
    await owner.getByRole('option', { name: 'member' }).click();
    await viewer.goto(`${dashboard.url}/#/api-keys`);
    await viewer.reload();
    await viewer.getByRole('link', { name: 'Create API key' }).waitFor();
    await viewer.getByRole('link', { name: 'Playground' }).waitFor();
  });

  test('the last owner can’t give up the role and is told why', async () => {
    await owner.getByRole('combobox', { name: 'Role of owner@example.com' }).click();
    await owner.getByRole('option', { name: 'viewer' }).click();
    await owner
      .getByText('The account needs an owner. Make another member an owner first.')
      .waitFor();
  });

  test('a revoked invitation no longer works', async () => {
    await owner.getByRole('radio', { name: 'member' }).check();
    await owner.getByRole('button', { name: 'Create invitation link' }).click();
    const link = await owner.getByLabel(/Invitation link for a new member/).innerText();
    const invitations = owner.getByRole('table', { name: 'Open invitations' });
    await invitations.getByRole('button', { name: 'Revoke' }).click();
    await owner.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await owner.getByText('No open invitations.').waitFor();
    const { page } = await openPage();
    await page.goto(link);
    await page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
  });

  test('changing the password signs the user out of other sessions', async () => {
    const { page: other } = await openPage();
    await other.goto(dashboard.url);
    await signInAsOwner(other);
    await waitForHome(other);

    await owner.getByLabel('Current password').fill(password);
    await owner.getByLabel('New password').fill('another horse battery');
    await owner.getByRole('button', { name: 'Change password' }).click();
    await owner.getByText('Password changed.').waitFor();
    assert.equal(await status(other, 'GET', '/dashboard/api/me'), 401);
    assert.equal(await status(owner, 'GET', '/dashboard/api/me'), 200);
  });

  test('a removed user is signed out immediately', async () => {
    await owner.getByRole('button', { name: 'Remove viewer@example.com' }).click();
    await owner.getByText('Their conversations and presets are deleted.').waitFor();
    await owner.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await owner.getByRole('row', { name: /viewer@example\.com/ }).waitFor({ state: 'detached' });
    assert.equal(await status(viewer, 'GET', '/dashboard/api/me'), 401);
  });

  test('signing out ends the session', async () => {
    await signOut(owner);
    await owner.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.equal(await status(owner, 'GET', '/dashboard/api/me'), 401);
  });
});
