// Limits and cost of keys and of the account, as users set them and programs run into them.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser } from '#test/support/browser.ts';
import {
  addBackends,
  createApiKey,
  type Dashboard,
  openAs,
  openDashboard,
  sendChat,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('limits of keys', () => {
  let dashboard: Dashboard;
  let page: Page;
  let key: string;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    await addBackends(dashboard, ['llama3.1-8b-instruct']);
  });

  const rowOf = (label: string) => page.getByRole('row', { name: new RegExp(label) });

  test('a key is created with limits, and a program that exceeds one is refused', async () => {
    await page.goto(`${dashboard.url}/#/api-keys/new`);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Label').fill('night job');
    await dialog.getByLabel('Requests per minute').fill('2');
    await dialog.getByLabel('Monthly budget').fill('20');
    await checkAppearance(page, 'api-keys-make');
    await dialog.getByRole('button', { name: 'Create API key' }).click();
    key = await page.getByLabel('night job', { exact: true }).innerText();
    await page.getByRole('button', { name: 'I saved the key' }).click();
    assert.equal((await sendChat(dashboard.url, key)).status, 200);
    assert.equal((await sendChat(dashboard.url, key)).status, 200);
    assert.equal((await sendChat(dashboard.url, key)).status, 429);
    const text = await rowOf('night job').innerText();
    assert.match(text, /2 requests\/min/);
    assert.match(text, /\$20\.00 per month/);
  });

  test('the list shows when a key was last used and what it cost', async () => {
    await until('the cost is shown', async () => {
      await page.reload();
      await rowOf('night job').waitFor();
      return /2 requests/.test(await rowOf('night job').getByText(/token/).innerText());
    });
    const text = await rowOf('night job').innerText();
    assert.match(text, /\$0\.0\d+ of \$20\.00/);
    assert.match(text, /just now|minute/);
    await checkAppearance(page, 'api-keys-list');
  });

  test('limits are changed and removed, from the next request on', async () => {
    await page.getByRole('link', { name: 'Edit night job' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit “night job”' });
    await dialog.getByLabel('Label').fill('day job');
    await dialog.getByLabel('Requests per minute').fill('');
    await dialog.getByLabel('Tokens per minute').fill('200000');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const text = await rowOf('day job').innerText();
    assert.match(text, /200,000 tokens\/min/);
    assert.doesNotMatch(text, /requests\/min/);
    assert.equal((await sendChat(dashboard.url, key)).status, 200);
  });

  test('the back button closes the dialog of a key', async () => {
    await page.getByRole('link', { name: 'Edit day job' }).click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test('an owner limits the whole account', async () => {
    await page.getByRole('link', { name: 'Edit account limits' }).click();
    const dialog = page.getByRole('dialog', { name: 'Account limits' });
    await dialog.getByLabel('Requests per minute').fill('1');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('1 request/min').waitFor();
    const other = await createApiKey(dashboard, 'other');
    const statuses = [await sendChat(dashboard.url, other), await sendChat(dashboard.url, other)];
    assert.ok(statuses.some(({ status }) => status === 429));
  });

  test('an invalid limit is refused before it is sent', async () => {
    await page.getByRole('link', { name: 'Edit account limits' }).click();
    const dialog = page.getByRole('dialog', { name: 'Account limits' });
    await dialog.getByLabel('Requests per minute').fill('0');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const isValid = await dialog
      .getByLabel('Requests per minute')
      .evaluate((field) => (field as unknown as { checkValidity(): boolean }).checkValidity());
    assert.equal(isValid, false);
    await dialog.waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  test('a member sees the account’s limits and that only owners can change them', async () => {
    const member = await openAs(dashboard, 'member');
    await member.goto(`${dashboard.url}/#/api-keys`);
    await member.getByText('Only owners can change these limits.').waitFor();
    await member.goto(`${dashboard.url}/#/api-keys/limits`);
    await member.getByRole('row', { name: /day job/ }).waitFor();
    assert.equal(await member.getByRole('dialog').count(), 0);
    const refused = await member.context().request.put(`${dashboard.url}/dashboard/api/limits`, {
      data: { requests_per_minute: null },
    });
    assert.equal(refused.status(), 403);
  });

  test('no key is stored in the browser, and the console shows no errors', async () => {
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])',
    );
    assert.doesNotMatch(String(kept), /secret_/);
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
