// Every page in both colour schemes and at both widths: accessible, readable, never wider than the screen.
// With MILLRACE_SCREENSHOTS=<folder> the pages are also left there as pictures.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  findViolations,
  joinBy,
  noBrowser,
  openPage,
  picture,
  type Served,
  serve,
  settle,
} from './browser.ts';

const pages: { path: string; heading: string }[] = [
  { path: '', heading: 'Home' },
  { path: 'playground', heading: 'Playground' },
  { path: 'api-keys', heading: 'API keys' },
  { path: 'api-keys/new', heading: 'Make an API key' },
  { path: 'api-keys/limits', heading: 'Limits of the account' },
  { path: 'models', heading: 'Models' },
  { path: 'models/pull', heading: 'Pull weights' },
  { path: 'models/add-backend', heading: 'Add a backend' },
  { path: 'machines', heading: 'Machines' },
  { path: 'machines/new', heading: 'Launch a machine' },
  { path: 'ssh-keys', heading: 'SSH keys' },
  { path: 'ssh-keys/new', heading: 'Add an SSH key' },
  { path: 'filesystems', heading: 'Filesystems' },
  { path: 'filesystems/new', heading: 'Make a filesystem' },
  { path: 'firewall', heading: 'Firewall' },
  { path: 'firewall/new', heading: 'Make a ruleset' },
  { path: 'hosts', heading: 'Hosts' },
  { path: 'hosts/new', heading: 'Add a host' },
  { path: 'usage', heading: 'Usage' },
  { path: 'usage/range=custom&by=machine', heading: 'Usage' },
  { path: 'usage/tab=requests', heading: 'Usage' },
  { path: 'team', heading: 'Team' },
  { path: 'audit-log', heading: 'Audit log' },
  { path: 'nowhere', heading: 'Nothing here' },
];
const widths = { wide: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } };

describe('how it looks', { skip: noBrowser }, () => {
  let served: Served;
  let page: Page;
  before(async () => {
    served = await serve();
    ({ page } = await openPage({ reducedMotion: 'reduce' }));
    await joinBy(page, served.setupLink, 'owner@example.com');
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [name, viewport] of Object.entries(widths)) {
      test(`every page is accessible and fits, ${colorScheme} and ${name}`, async () => {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(viewport);
        for (const { path, heading } of pages) {
          await page.goto(`${served.url}/#/${path}`);
          await page.getByRole('heading', { name: heading, exact: true }).waitFor();
          await settle(page);
          await picture(page, `${colorScheme}-${name}-${path.replaceAll(/\W+/g, '-') || 'home'}`);
          assert.deepEqual(await findViolations(page), [], `/${path} is not accessible`);
          assert.ok(await fits(page), `/${path} is wider than the screen`);
        }
      });
    }
  }

  test('the doors are accessible in both schemes', async () => {
    const { page: door } = await openPage();
    for (const colorScheme of ['light', 'dark'] as const) {
      await door.emulateMedia({ colorScheme });
      await door.goto(served.url);
      await door.getByRole('button', { name: 'Sign in' }).waitFor();
      assert.deepEqual(await findViolations(door), []);
      await door.goto(served.setupLink);
      await door.getByRole('heading', { name: 'This link no longer works' }).waitFor();
      assert.deepEqual(await findViolations(door), []);
    }
  });

  test('a chosen scheme wins over the system’s and is remembered', async () => {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize(widths.wide);
    await page.goto(`${served.url}/#/`);
    await page.getByRole('button', { name: 'Colours' }).click();
    await page.getByRole('menuitem', { name: 'Dark' }).click();
    await page.reload();
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    assert.equal(background, 'rgb(36, 36, 36)');
  });

  test('on a phone the navigation opens, leads on and closes', async () => {
    await page.setViewportSize(widths.phone);
    await page.getByRole('button', { name: 'Open the navigation' }).click();
    await page.getByRole('link', { name: 'Models' }).click();
    await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Open the navigation' }).waitFor();
  });
});

const fits = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth <= innerWidth');
