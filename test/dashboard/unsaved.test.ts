// What the user has entered, and secrets that are shown once, are never lost without a question.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, findViolations } from '#test/support/browser.ts';
import { type Dashboard, openDashboard } from '#test/support/dashboard.ts';

describeInBrowser('unsaved input', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
  });

  const dialog = (name: RegExp | string) => page.getByRole('dialog', { name });
  const question = () => dialog(/^(Close without saving|Discard unsaved)/);

  // Playwright's goBack waits for a navigation, which doesn't come if the page asks first.
  const goBack = () => page.evaluate('history.back()');

  async function stay() {
    await question().getByRole('button', { name: 'Stay here' }).click();
    await question().waitFor({ state: 'detached' });
  }

  test('Escape and the back button ask before they close a new API key', async () => {
    await page.goto(`${dashboard.url}/#/api-keys`);
    await page.getByRole('link', { name: 'Create API key' }).click();
    await page.getByLabel('Label').fill('only once');
    await page.getByRole('button', { name: 'Create API key' }).click();
    const key = await page.getByLabel('only once', { exact: true }).innerText();
    for (const leave of [() => page.keyboard.press('Escape'), goBack]) {
      await leave();
      await question().getByText('can’t be shown again').waitFor();
      assert.deepEqual(await findViolations(page), []);
      await stay();
      assert.equal(await page.getByLabel('only once', { exact: true }).innerText(), key);
    }
    await page.getByRole('button', { name: 'I saved the key' }).click();
    await page.getByText(key).waitFor({ state: 'detached' });
    assert.equal(await question().count(), 0);
  });

  test('a generated SSH key asks until it is downloaded', async () => {
    await page.goto(`${dashboard.url}/#/ssh-keys/new`);
    await page.getByText('Generate a key pair').click();
    await page.getByLabel('Name').fill('laptop');
    await page.getByRole('button', { name: 'Generate SSH key' }).click();
    await dialog('Your new SSH key').waitFor();
    await page.keyboard.press('Escape');
    await stay();
    await page.getByRole('button', { name: 'Download laptop.pem' }).click();
    await page.getByText('chmod 600 ~/.ssh/laptop.pem').waitFor();
    await page.keyboard.press('Escape');
    await dialog('Your new SSH key').waitFor({ state: 'detached' });
  });

  test('a half-filled dialog asks, an untouched one closes', async () => {
    await page.goto(`${dashboard.url}/#/filesystems/new`);
    const form = dialog('Create filesystem');
    await form.waitFor();
    await page.keyboard.press('Escape');
    await form.waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'Create filesystem' }).click();
    await form.getByLabel('Name').fill('half');
    await goBack();
    await stay();
    assert.equal(await form.getByLabel('Name').inputValue(), 'half');
    await form.getByRole('button', { name: 'Cancel' }).click();
    await question().getByRole('button', { name: 'Discard' }).click();
    await form.waitFor({ state: 'detached' });
  });

  test('unsaved firewall rules are kept on the page, and leaving it asks', async () => {
    await page.getByRole('link', { name: 'Firewall' }).click();
    await page.getByRole('button', { name: 'Add rule' }).click();
    await page.getByText('Unsaved changes').waitFor();
    const rule = page.getByRole('group', { name: 'Rule 3' });
    await rule.getByLabel('Source').fill('203.0.113.7/32');
    await page.getByRole('link', { name: 'Create ruleset' }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Team' }).click();
    await stay();
    assert.equal(await rule.getByLabel('Source').inputValue(), '203.0.113.7/32');
    await page.getByRole('link', { name: 'Team' }).click();
    await question().getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('heading', { name: 'Team', level: 1 }).waitFor();
    assert.equal(await question().count(), 0);
  });

  test('input stays while the server can’t be reached', async () => {
    await page.goto(`${dashboard.url}/#/filesystems/new`);
    const form = dialog('Create filesystem');
    await form.getByLabel('Name').fill('kept');
    await page.context().setOffline(true);
    await form.getByRole('button', { name: 'Create filesystem' }).click();
    await form.getByText('Can’t reach the server').waitFor();
    // Returning to the tab after a minute fetches the signed-in user again, which fails.
    await page.clock.install();
    await page.clock.fastForward('02:00');
    const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/me'));
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await failed;
    await page.clock.fastForward('01:00');
    await page.context().setOffline(false);
    assert.equal(await form.getByLabel('Name').inputValue(), 'kept');
    await form.getByRole('button', { name: 'Create filesystem' }).click();
    await page.getByRole('row', { name: /kept/ }).waitFor();
  });
});
