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
import { chapters } from '../../web/help/.vitepress/chapters.ts';

const root = join(import.meta.dirname, '../..');
const names = chapters.flatMap(({ items }) => items.map(({ link }) => link.slice(1)));
const paths = ['', ...names.map((one) => `${one}.html`)];

/** Their colors are those of every page: headings, links, tables, code and notes. */
const inTheDark = inSoak(['', 'configuration.html', 'quickstarts.html'], paths);

describeInBrowser(
  'the guide',
  () => {
    let url: string;
    before(async () => {
      ({ url } = await startServer());
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
      assert.match(
        start.headers.get('content-security-policy') ?? '',
        /script-src 'self' 'sha256-/,
      );
    });

    const claim = `every page is accessible, ${inTheDark.length} of them in the dark too, and loads nothing from other hosts`;
    test(claim, { skip: noBrowser }, async () => {
      const { page, hosts, consoleErrors } = await openPage({ reducedMotion: 'reduce' });
      for (const path of paths) {
        await page.emulateMedia({ colorScheme: 'light' });
        await page.goto(`${url}/help/${path}`);
        await page.locator('html:not(.dark) h1').first().waitFor();
        await screenshot(page, `help-${path || 'home'}-light`);
        assert.deepEqual(await findViolations(page), [], `${path} in light`);
        if (!inTheDark.includes(path)) continue;
        await page.emulateMedia({ colorScheme: 'dark' });
        await page.locator('html.dark').waitFor();
        await screenshot(page, `help-${path || 'home'}-dark`);
        assert.deepEqual(await findViolations(page, colorRules), [], `${path} in dark`);
      }
      await page.setViewportSize({ width: 390, height: 780 });
      assert.ok(await fitsWidth(page));
      assert.deepEqual([...hosts], [new URL(url).host]);
      assert.deepEqual(consoleErrors, []);
    });

    const search = 'a reader finds a page by searching and can leave for the dashboard';
    test(search, { skip: noBrowser }, async () => {
      const { page } = await openPage({ reducedMotion: 'reduce' });
      await page.goto(`${url}/help/`);
      await page
        .getByRole('button', { name: /search/i })
        .first()
        .click();
      await page.getByRole('searchbox').fill('restore drill');
      const found = page.getByRole('option').first();
      await found.waitFor();
      await found.click();
      await page.getByRole('heading', { name: /Restore drill/ }).waitFor();
      await page.getByRole('link', { name: 'API reference' }).first().click();
      await page.waitForURL(`${url}/docs`);
    });
  },
  { skip: false },
);
