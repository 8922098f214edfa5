// The dashboard by keyboard alone: Tab reaches everything that can be used and shows where it is, dialogs keep the focus
// and give it back, menus are walked by arrow keys, and what a page is for can be done.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, settle } from '#test/support/browser.ts';
import {
  createApiKey,
  type Dashboard,
  openDashboard,
  post,
  sendChat,
  signInAsOwner,
  signOut,
  waitForHome,
} from '#test/support/dashboard.ts';
import { isFocused, maxStops, press, reach } from '#test/support/keyboard.ts';
import { until } from '#test/support/until.ts';

/** What Tab must reach in a part of the page: of a group of radio buttons only one. */
const findUnreached = (part: string) => `[...document.querySelector('${part}').querySelectorAll(
  'a[href], button, input, select, textarea, summary, [tabindex="0"]',
)]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0)
  .filter((one) => !one.disabled && one.tabIndex >= 0 && one.type !== 'radio')
  .filter((one) => !one.closest('[inert], [aria-hidden="true"]') && !window.reached.has(one))
  .map((one) => one.outerHTML.slice(0, 160))`;

/** Notes the focused element. Returns null outside of the part, at its end, or what is wrong with the element. */
const noteFocus = (part: string) => `(() => {
  const one = document.activeElement;
  if (!one?.matches('${part} *') || window.reached.has(one)) return null;
  window.reached.add(one);
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
  const hasRing = (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none';
  // Fields change the color of their border.
  const isShown = hasRing || one.matches('input, textarea, select') || one.matches('.xterm *');
  return isShown ? '' : 'no visible focus: ' + one.outerHTML.slice(0, 160);
})()`;

/** Tab then goes on from the top, as on a page that was loaded anew, which takes a second of CPU time. */
const focusTop = `(() => {
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute('tabindex');
})()`;

const pages: [path: string, heading: string][] = [
  ['', 'Home'],
  ['playground', 'Playground'],
  ['models', 'Models'],
  ['models/llama3.1-8b-instruct', 'llama3.1-8b-instruct'],
  ['deployments', 'Deployments'],
  ['batches', 'Batches'],
  ['api-keys', 'API keys'],
  ['usage', 'Usage'],
  ['usage/requests', 'Usage'],
  ['machines', 'Machines'],
  ['machines/new', 'Launch machine'],
  ['ssh-keys', 'SSH keys'],
  ['filesystems', 'Filesystems'],
  ['firewall', 'Firewall'],
  ['hosts', 'Hosts'],
  ['team', 'Team'],
  ['audit-log', 'Audit log'],
];

/** What each page is for, and the dialog that it opens. */
const dialogs: [path: string, button: string, dialog: string | RegExp][] = [
  ['api-keys', 'Create API key', 'Create API key'],
  ['ssh-keys', 'Add SSH key', 'Add SSH key'],
  ['filesystems', 'Create filesystem', 'Create filesystem'],
  ['firewall', 'Create ruleset', 'Create ruleset'],
  ['hosts', 'Add host', 'Add host'],
  ['deployments', 'Deploy model', 'Deploy model'],
  ['models', 'Pull weights', 'Pull weights'],
  ['models', 'Add backend', 'Add backend'],
];

describeInBrowser('the dashboard by keyboard', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    const { url } = dashboard;
    const key = await createApiKey(dashboard, 'importer');
    await sendChat(url, key);
    await post(page, `${url}/api/v1/ssh-keys`, { name: 'laptop' });
    await post(page, `${url}/api/v1/filesystems`, { name: 'data', region: 'us-east-1' });
  });

  const open = async (path: string) => {
    await page.goto(`${dashboard.url}/#/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await settle(page);
    await page.evaluate(focusTop);
  };

  const openContent = async (path: string) => {
    await open(path);
    await press(page, page.getByRole('button', { name: 'Skip to content' }));
  };

  for (const [path, heading] of pages) {
    test(`Tab reaches everything on ${heading} (/${path}), and shows where it is`, async () => {
      // The navigation is the same on every page, so Tab walks it on the first only.
      const part = path === '' ? 'body' : 'main';
      await (path === '' ? open : openContent)(path);
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await page.evaluate('window.reached = new Set()');
      const wrong: string[] = [];
      for (let stop = 0; stop < maxStops; stop++) {
        await page.keyboard.press('Tab');
        const problem = (await page.evaluate(noteFocus(part))) as string | null;
        if (problem === null) break;
        if (problem !== '') wrong.push(problem);
      }
      assert.deepEqual(wrong, []);
      assert.deepEqual(await page.evaluate(findUnreached(part)), []);
    });
  }

  for (const [path, button, dialog] of dialogs) {
    test(`“${button}” opens a dialog that keeps the focus, and gives it back`, async () => {
      await openContent(path);
      const opener = page
        .getByRole('main')
        .getByRole('button', { name: button, exact: true })
        .or(page.getByRole('main').getByRole('link', { name: button, exact: true }));
      await reach(page, opener.first());
      await page.keyboard.press('Enter');
      const shown = page.getByRole('dialog', { name: dialog });
      await shown.waitFor();
      const holdsFocus = async () => (await shown.locator(':focus').count()) === 1;
      await until('the dialog has the focus', holdsFocus);
      const stops = await shown.locator('a, button, input, select, textarea, [tabindex]').count();
      for (let stop = 0; stop <= stops; stop++) {
        await page.keyboard.press('Tab');
        assert(await holdsFocus(), `the focus left the dialog after ${stop + 1} stops`);
      }
      await page.keyboard.press('Escape');
      await shown.waitFor({ state: 'detached' });
      await until('the focus is back', () => isFocused(opener.first()));
    });
  }

  test('the account menu is walked by arrow keys', async () => {
    await open('models');
    const button = page.getByRole('button', { name: 'Account menu' });
    await reach(page, button);
    await page.keyboard.press('Enter');
    const items = page.getByRole('menuitem');
    await items.first().waitFor();
    await page.keyboard.press('ArrowDown');
    await until('an item has the focus', async () => isFocused(items.first()));
    await page.keyboard.press('End');
    await until('the last item has it', async () => isFocused(items.last()));
    await page.keyboard.press('Escape');
    await until('the focus is back', () => isFocused(button));
  });

  test('an SSH key is added and deleted', async () => {
    await openContent('ssh-keys');
    await reach(page, page.getByRole('link', { name: 'Add SSH key' }));
    await page.keyboard.press('Enter');
    await reach(page, page.getByRole('radio', { name: 'Paste a public key' }));
    await page.keyboard.press('ArrowRight');
    await reach(page, page.getByLabel('Name'));
    await page.keyboard.type('typed');
    await page.keyboard.press('Enter');
    const made = page.getByRole('dialog', { name: 'Your new SSH key' });
    await reach(page, made.getByRole('button', { name: /^Download/ }));
    await page.keyboard.press('Enter');
    await reach(page, made.getByRole('button', { name: 'Done' }));
    await page.keyboard.press('Enter');
    await made.waitFor({ state: 'detached' });
    const row = page.getByRole('row', { name: /typed/ });
    await reach(page, row.getByRole('button', { name: /^Delete/ }));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: /typed/ });
    await reach(page, dialog.getByRole('button', { name: 'Delete' }));
    await page.keyboard.press('Enter');
    await row.waitFor({ state: 'detached' });
  });

  test('a chat is held', async () => {
    await openContent('playground');
    await reach(page, page.getByLabel('Message', { exact: true }));
    await page.keyboard.type('What is the capital of France?');
    await page.keyboard.press('Enter');
    await page.getByText(/tokens in · \d+ out/).waitFor();
    await reach(page, page.getByRole('button', { name: 'Copy response' }));
  });

  test('a person signs in', async () => {
    await open('');
    await signOut(page);
    await page.getByLabel('Email').waitFor();
    await reach(page, page.getByLabel('Email'));
    await page.keyboard.type('owner@example.com');
    await reach(page, page.getByLabel('Password', { exact: true }));
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await signInAsOwner(page);
    await waitForHome(page);
  });
});
