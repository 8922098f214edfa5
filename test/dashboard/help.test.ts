// The guide in a real browser: its pages, its search and its looks, with nothing from other hosts.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import {
  colorRules,
  describeInBrowser,
  findViolations,
  fitsWidth,
  noBrowser,
  openPage,
  screenshot,
} from '#test/support/browser.ts';
import { startServer } from '#test/support/dashboard.ts';
import { inSoak } from '#test/support/soak.ts';
import { until } from '#test/support/until.ts';
import { chapters } from '../../web/help/chapters.ts';

const root = join(import.meta.dirname, '../..');
const names = chapters.flatMap(({ items }) => items.map(({ name }) => name));
const paths = ['', ...names.map((one) => `${one}.html`)];

/** Their colors are those of every page: headings, links, tables, code and notes. */
const inTheDark = inSoak(['', 'configuration.html', 'quickstarts.html'], paths);

describeInBrowser(
  'the guide',
  () => {
    let url: string;
    before(async () => {
      ({ url } = await startServer());
      await until('the guide is built', async () => (await fetch(`${url}/help/`)).ok, 120_000);
    });

    test('lists every page of docs/', () => {
      const pages = readdirSync(join(root, 'docs'))
        .filter((file) => file.endsWith('.md') && file !== 'index.md')
        .map((file) => file.slice(0, -3));
      assert.deepEqual([...names].sort(), pages.sort());
    });

    test('has no page for an unknown name, and none outside its folder', async () => {
      for (const path of ['/help/nothing.html', '/help/assets', '/help/%2e%2e%2fpackage.json']) {
        assert.equal((await fetch(url + path)).status, 404, path);
      }
      const start = await fetch(`${url}/help`);
      assert.equal(start.url, `${url}/help/`);
      assert.match(start.headers.get('content-security-policy') ?? '', /script-src 'self';/);
    });

    const claim = `every page is accessible, ${inTheDark.length} of them in the dark too, and loads nothing from other hosts`;
    test(claim, { skip: noBrowser }, async () => {
      const { page, hosts, consoleErrors } = await openPage({ reducedMotion: 'reduce' });
      for (const path of paths) {
        await page.emulateMedia({ colorScheme: 'light' });
        await page.goto(`${url}/help/${path}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await screenshot(page, `help-${path || 'home'}-light`);
        assert.deepEqual(await findViolations(page), [], `${path} in light`);
        if (!inTheDark.includes(path)) continue;
        await page.emulateMedia({ colorScheme: 'dark' });
        await screenshot(page, `help-${path || 'home'}-dark`);
        assert.deepEqual(await findViolations(page, colorRules), [], `${path} in dark`);
      }
      await page.setViewportSize({ width: 390, height: 780 });
      for (const path of inTheDark) {
        await page.goto(`${url}/help/${path}`);
        assert.ok(await fitsWidth(page), `${path} is wider than a phone`);
      }
      assert.deepEqual([...hosts], [new URL(url).host]);
      assert.deepEqual(consoleErrors, []);
    });

    const search = 'a reader finds a page by searching and can leave for the API reference';
    test(search, { skip: noBrowser }, async () => {
      const { page } = await openPage({ reducedMotion: 'reduce' });
      await page.goto(`${url}/help/`);
      await page.keyboard.press('/');
      await page.getByRole('combobox', { name: 'Search the guide' }).fill('restore drill');
      await page.getByRole('option').first().waitFor();
      assert.deepEqual(await findViolations(page), []);
      await page.keyboard.press('Enter');
      await page.waitForURL(`${url}/help/operations.html#restore-drill`);
      assert.equal(await page.title(), 'Operations · Millrace');
      assert.ok(await page.getByRole('heading', { name: 'Restore drill' }).isVisible());
      await page.getByRole('button', { name: /^Search/ }).click();
      await page.getByRole('combobox').fill('zyzzyva');
      await page.getByText('Nothing found for “zyzzyva”.').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'API reference' }).click();
      await page.waitForURL(`${url}/docs`);
    });

    const scheme = 'the color scheme that a reader chooses is that of the dashboard too';
    test(scheme, { skip: noBrowser }, async () => {
      const { page } = await openPage({ colorScheme: 'light' });
      await page.goto(`${url}/help/`);
      await page.getByRole('button', { name: 'Switch between light and dark' }).click();
      await page.reload();
      assert.equal(
        await page.evaluate('getComputedStyle(document.documentElement).colorScheme'),
        'dark',
      );
      await page.goto(`${url}/`);
      await page.locator('html[data-mantine-color-scheme="dark"]').waitFor();
    });

    test('code is copied as it is shown', { skip: noBrowser }, async () => {
      const { page } = await openPage({ permissions: ['clipboard-read', 'clipboard-write'] });
      await page.goto(`${url}/help/getting-started.html`);
      const first = page.locator('.code').first();
      await first.hover();
      await first.getByRole('button', { name: 'Copy' }).click();
      await first.getByRole('button', { name: 'Copied' }).waitFor();
      assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'npm ci && npm start');
    });

    const plain = 'a phone without scripts shows pages and the menu that leads to them';
    test(plain, { skip: noBrowser }, async () => {
      const viewport = { width: 390, height: 780 };
      const { page } = await openPage({ javaScriptEnabled: false, viewport });
      await page.goto(`${url}/help/`);
      assert.equal(await page.getByRole('button', { name: /^Search/ }).count(), 0);
      await page.getByRole('button', { name: 'Menu' }).click();
      const pages = page.getByRole('navigation', { name: 'Pages' });
      await pages.getByRole('link', { name: 'Batches' }).click();
      await page.getByRole('heading', { name: 'Batches', level: 1 }).waitFor();
    });
  },
  { skip: false },
);
