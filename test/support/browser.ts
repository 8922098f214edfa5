// Chromium for tests of the dashboard: pages with their own cookies, screenshots, and accessibility checks.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { skipFor } from './programs.ts';
import { isSoak } from './soak.ts';

/** The first one starts in a third of the time. */
const knownPaths = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...knownPaths].find(
  (path) => path !== '' && existsSync(path),
);

/** Why browser tests are skipped, or false. */
export const noBrowser =
  executablePath === undefined && skipFor('no Chromium: install it, or set CHROMIUM_PATH');

/** One for the process, however many test files are in it: the first start takes a second of CPU time. */
let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

/** What the describe that runs has opened; null outside of `describeInBrowser`. */
let opened: BrowserPage[] | null = null;
let endings: (() => Promise<unknown>)[] = [];

/** A describe whose tests open pages. At its end they are closed, and then what else was opened for it. */
export function describeInBrowser(
  name: string,
  body: () => void,
  { skip = noBrowser, timeout }: { skip?: string | false; timeout?: number } = {},
): void {
  describe(name, { skip, ...(timeout !== undefined && { timeout }) }, () => {
    before(() => {
      opened = [];
    });
    // What a page showed says more about a failed test than what the test waited for.
    afterEach(async (test) => {
      if (!(test as TestContext).passed) await report(opened ?? []);
    });
    body();
    // The last of the describe's own, because hooks run in order.
    after(async () => {
      const [pages, rest] = [opened ?? [], endings.reverse()];
      opened = null;
      endings = [];
      for (const { page } of pages) await page.context().close();
      for (const end of rest) await end();
    });
  });
}

/** Runs at the end of the describe that runs, after its pages are closed. */
export const atEnd = (end: () => Promise<unknown>): void => void endings.push(end);

async function report(pages: readonly BrowserPage[]): Promise<void> {
  for (const { page, consoleErrors } of pages.filter((one) => !one.page.isClosed())) {
    const text = await page.locator('body').ariaSnapshot({ timeout: 5_000 }).catch(String);
    console.error(
      [`In the browser: ${page.url()}`, ...consoleErrors, text.slice(0, 3_000)].join('\n'),
    );
  }
}

export interface BrowserPage {
  page: Page;
  /** Errors in the console, e.g. violations of the content security policy. */
  consoleErrors: string[];
  /** Every host that the page sent a request to. */
  hosts: Set<string>;
}

/** Opens a page in a new browser context, which shares no cookies with others. */
export async function openPage(options: BrowserContextOptions = {}): Promise<BrowserPage> {
  assert(opened !== null, 'pages are opened inside of describeInBrowser');
  browser ??= launch();
  const context = await (await browser).newContext(options);
  // Generous, because a busy machine is slow. A test that passes never waits this long.
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const consoleErrors: string[] = [];
  page.on('pageerror', (error) => consoleErrors.push(error.message));
  page.on('console', (message) => {
    // The browser logs requests that fail, which some tests expect.
    if (message.type() !== 'error' || message.text().startsWith('Failed to load resource')) return;
    consoleErrors.push(message.text());
  });
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  opened.push({ page, consoleErrors, hosts });
  return { page, consoleErrors, hosts };
}

const launch = (): Promise<Browser> =>
  chromium.launch({
    executablePath: executablePath as string,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });

/** Checks that the page is accessible, and that it does not scroll sideways on a phone. The long form checks it in the dark
 * and on a phone as well: appearance.test.ts does so for every page, and a run of axe-core takes 0.4 s of CPU time. */
export async function checkAppearance(page: Page, name: string): Promise<void> {
  const wide = page.viewportSize() ?? { width: 1280, height: 800 };
  if (isSoak) {
    await setColorScheme(page, 'dark');
    await screenshot(page, `${name}-dark`);
    assert.deepEqual(await findViolations(page, colorRules), [], `${name} in dark`);
  }
  await setColorScheme(page, 'light');
  await screenshot(page, `${name}-light`);
  assert.deepEqual(await findViolations(page), [], `${name} in light`);
  await page.setViewportSize({ width: 390, height: 780 });
  await settle(page);
  await screenshot(page, `${name}-phone`);
  if (isSoak) assert.deepEqual(await findViolations(page), [], `${name} on a phone`);
  assert.ok(await fitsWidth(page), `${name} is wider than a phone`);
  await page.setViewportSize(wide);
  await settle(page);
}

/** Waits until the page has applied the color scheme and transitions have ended. */
export async function setColorScheme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor();
  await settle(page);
}

/** The rules of axe-core about colors. The others find the same in both color schemes, so one of them needs only these. */
export const colorRules = ['color-contrast', 'link-in-text-block'];

/** Accessibility violations that axe-core finds, of every impact. Only tooltips may be outside of all landmarks. */
export async function findViolations(page: Page, runOnly?: readonly string[]): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  const options = JSON.stringify({ resultTypes: ['violations'], runOnly });
  return page.evaluate(`axe.run(${options}).then(({ violations }) => violations
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html))
    .filter((found) => !/^region: .*role="tooltip"/.test(found))
    .map((found) => found.slice(0, 200)))`);
}

/** True if the page does not scroll sideways. */
export const fitsWidth = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth <= innerWidth');

/** Saves a screenshot in the folder that MILLRACE_SCREENSHOTS names, if it is set. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.MILLRACE_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** Waits until lists have loaded and animations have ended. */
export async function settle(page: Page): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await page.evaluate(isSettled))) {
    assert.ok(Date.now() < deadline, `${page.url()} does not settle`);
    await setTimeout(20);
  }
}

const isSettled = `document.querySelector('[aria-busy="true"]') === null &&
  document.getAnimations().every(({ playState }) => playState === 'finished')`;
