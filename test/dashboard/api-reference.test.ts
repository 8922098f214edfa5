// The API reference in a real browser: what a reader finds, tries and copies there, with nothing from other hosts.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import {
  type BrowserPage,
  colorRules,
  describeInBrowser,
  findViolations,
  fitsWidth,
  openPage,
  screenshot,
} from '#test/support/browser.ts';
import { createApiKey, type Dashboard, openDashboard } from '#test/support/dashboard.ts';
import { isSoak } from '#test/support/soak.ts';

/** Words in tables that are on more than one line. */
const findBrokenWords = `[...document.querySelectorAll('td, th')].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const broken = [];
  while (walker.nextNode()) {
    for (const { 0: word, index } of walker.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, index);
      range.setEnd(walker.currentNode, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (lines.size > 1) broken.push(word);
    }
  }
  return broken;
})`;

async function openReference(url: string): Promise<BrowserPage> {
  const opened = await openPage();
  const { page } = opened;
  await page.goto(`${url}/docs`);
  await page.getByRole('heading', { name: 'Millrace', level: 1 }).waitFor();
  // Operations are rendered once they are near.
  await page.getByRole('link', { name: 'List models' }).first().click();
  await page.getByRole('heading', { name: 'List models' }).first().waitFor();
  return opened;
}

describeInBrowser('API reference', () => {
  let dashboard: Dashboard;
  let url: string;
  let opened: BrowserPage;
  before(async () => {
    dashboard = await openDashboard();
    ({ url } = dashboard);
    // Once for all: the page costs four seconds of CPU time.
    opened = await openReference(url);
  });

  test('a reader tries an operation with a key', async () => {
    const key = await createApiKey(dashboard, 'reference');
    const { page } = opened;
    await page.getByPlaceholder('Token').first().fill(key);
    const sent = page.waitForResponse(`${url}/v1/models`);
    await page
      .getByRole('button', { name: /Test Request.*\/v1\/models\)?$/ })
      .first()
      .click();
    await page.getByRole('button', { name: /^Send/ }).first().click();
    const response = await sent;
    assert.equal(response.status(), 200);
    await screenshot(page, 'api-reference-tried');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Send/ }).first().waitFor({ state: 'hidden' });
  });

  // The page is so large that axe-core takes ten seconds of CPU time for each run.
  test('it is accessible, in the long form in the dark and while searching too', async () => {
    const { page } = opened;
    await page.getByRole('link', { name: 'Answer a conversation' }).click();
    await page.getByRole('heading', { name: 'Answer a conversation' }).waitFor();
    await screenshot(page, 'api-reference-light');
    assert.deepEqual(await findViolations(page), [], 'light');
    if (!isSoak) return;
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('body.dark-mode').waitFor();
    await screenshot(page, 'api-reference-dark');
    assert.deepEqual(await findViolations(page, colorRules), [], 'dark');
    await page.emulateMedia({ colorScheme: 'light' });
  });

  test('a reader finds an operation by searching', async () => {
    const { page } = opened;
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click();
    await page.keyboard.type('terminate');
    const found = page.getByRole('option', { name: /Terminate instances/ }).first();
    await found.waitFor();
    if (isSoak) assert.deepEqual(await findViolations(page), []);
    await found.click();
    await page.getByRole('heading', { name: /^Terminate instances/ }).waitFor();
  });

  test('tables break no words, on a screen and on a phone, which the page fits', async () => {
    const { page } = opened;
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      assert(Number(await page.evaluate('document.querySelectorAll("td").length')) > 3);
      assert.deepEqual(await page.evaluate(findBrokenWords), [], `at ${width} pixels`);
    }
    assert.ok(await fitsWidth(page), 'it fits a phone');
  });

  test('the cloud API has a reference of its own', async () => {
    const { page } = await openPage();
    await page.goto(`${url}/api/v1/docs`);
    await page.getByRole('heading', { name: 'List instance types' }).first().waitFor();
    assert.equal(await page.getByText('/v1/chat/completions').count(), 0);
  });

  test('it loads nothing from other hosts, and the console shows no errors', () => {
    assert.deepEqual([...opened.hosts], [new URL(url).host]);
    assert.deepEqual(opened.consoleErrors, []);
  });
});
