// The frame around the pages: command palette, shortcuts, breadcrumbs, tables with their state in the address, and the
// notice that the server does not respond.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser, findViolations } from '#test/support/browser.ts';
import {
  addBackends,
  createApiKey,
  type Dashboard,
  openAs,
  openDashboard,
  post,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('the shell', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    for (const name of ['alpha', 'beta', 'gamma']) {
      await post(page, `${dashboard.url}/api/v1/ssh-keys`, { name });
    }
  });

  const { promise: settled, resolve: settle } = Promise.withResolvers<void>();
  const heading = (name: string) => page.getByRole('heading', { name, level: 1 });
  const open = (path: string) => page.goto(`${dashboard.url}/#/${path}`);
  const palette = () => page.getByRole('dialog', { name: 'Search and commands' });
  const names = () =>
    page
      .getByRole('table', { name: 'SSH keys' })
      .locator('tbody tr td:first-child')
      .allInnerTexts();
  const untilNames = (expected: string[]) =>
    until(`the rows ${expected}`, async () => (await names()).join() === expected.join());

  test('the palette has the letters that were typed before it was there', async () => {
    await page.route(/\/assets\/palette-[^o].*\.js$/, async (route) => {
      await settled;
      await route.continue();
    });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('ssh keyz');
    await page.keyboard.press('Backspace');
    await page.keyboard.type('s');
    assert.equal(await palette().count(), 0);
    settle();
    await palette().waitFor();
    await page.keyboard.type('!');
    const field = palette().getByRole('textbox', { name: 'Search and commands' });
    await until('it has them', async () => (await field.inputValue()) === 'ssh keys!');
    await page.keyboard.press('Escape');
    await palette().waitFor({ state: 'detached' });
  });

  test('the palette finds pages, keys and actions, and works by keyboard', async () => {
    await createApiKey(dashboard, 'importer');
    await page.keyboard.press('Control+k');
    await palette().waitFor();
    await checkAppearance(page, 'palette');
    await page.keyboard.type('ssh keys');
    await palette()
      .getByRole('option', { name: /SSH keys/ })
      .or(palette().getByText('SSH keys'))
      .first()
      .waitFor();
    await page.keyboard.press('Enter');
    await heading('SSH keys').waitFor();
    await page.keyboard.press('Control+k');
    await palette().waitFor();
    await page.keyboard.type('importer');
    await palette().getByText('importer').first().waitFor();
    await page.keyboard.press('Escape');
    await palette().waitFor({ state: 'detached' });
  });

  test('the code of a page loads while the server is asked who is signed in', async () => {
    const released = Promise.withResolvers<void>();
    const me = '**/dashboard/api/me';
    await page.route(me, (route) => released.promise.then(() => route.continue()));
    await page.goto('about:blank');
    const [request] = await Promise.all([
      page.waitForRequest(/\/firewall-[^/]*\.js$/),
      open('firewall'),
    ]);
    assert(request.url().startsWith(dashboard.url));
    released.resolve();
    await heading('Firewall').waitFor();
    await page.unroute(me);
  });

  test('? lists the shortcuts, and two keys open a page', async () => {
    await open('models');
    await heading('Models').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await checkAppearance(page, 'shortcuts');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('g');
    await page.keyboard.press('f');
    await heading('Filesystems').waitFor();
    const crumbs = page.getByRole('navigation', { name: 'Breadcrumbs' });
    assert.match(await crumbs.innerText(), /Compute\s+Filesystems/);
  });

  test('a table keeps its search and order in the address', async () => {
    await open('ssh-keys');
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    await untilNames(['alpha', 'beta', 'gamma']);
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    await untilNames(['gamma', 'beta', 'alpha']);
    await page.keyboard.press('/');
    // Long enough not to be found in the random letters of another public key.
    await page.keyboard.type('gamm');
    await untilNames(['gamma']);
    assert.match(page.url(), /#\/ssh-keys\/.*q=gamm/);
    assert.deepEqual(await findViolations(page), []);
    await page.reload();
    await untilNames(['gamma']);
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await untilNames(['gamma', 'beta', 'alpha']);
  });

  test('a backend that nothing has reached is not called healthy', async () => {
    await addBackends(dashboard, ['hermes3-8b']);
    await open('models/q=hermes3-8b');
    await page.getByText('not tried yet', { exact: true }).waitFor();
  });

  test('a viewer finds no action in the palette that viewers may not take', async () => {
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.getByRole('button', { name: /^Search/ }).click();
    await viewer.getByRole('dialog', { name: 'Search and commands' }).waitFor();
    await viewer.keyboard.type('launch');
    await viewer.getByText('Nothing found').waitFor();
  });

  test('every page says when the server does not respond', async () => {
    await page.clock.install();
    await open('filesystems');
    await heading('Filesystems').waitFor();
    await page.route('**/dashboard/api/**', (route) => route.abort());
    const notice = page.getByText(
      /^The server does not respond\. This page has not been updated since \d\d:\d\d \(.+\)\.$/,
    );
    await until('the notice', async () => {
      await page.clock.fastForward(10_000);
      return (await notice.count()) === 1;
    });
    await page.setViewportSize({ width: 390, height: 780 });
    const isWhole = `[document.querySelector('.server-banner .mantine-Button-label')]
      .every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)`;
    assert.equal(await page.evaluate(isWhole), true, 'the button is whole on a phone');
    await page.unroute('**/dashboard/api/**');
    await until('the notice is gone', async () => {
      await page.clock.fastForward(10_000);
      return (await notice.count()) === 0;
    });
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
