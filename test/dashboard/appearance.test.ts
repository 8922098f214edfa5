// Every page in both colour schemes and at both widths: accessible, readable, never wider than the screen.
// And every page with full lists at the widths between.
// With MILLRACE_SCREENSHOTS=<folder> the pages are also left there as pictures.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  ask,
  endMachines,
  findViolations,
  joinBy,
  makeKey,
  noBrowser,
  openPage,
  picture,
  type Served,
  serve,
  settle,
} from '#test/support/browser.ts';
import { until } from '#test/support/until.ts';

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

/** A new server, and its owner's browser. */
async function enter(): Promise<{ served: Served; page: Page }> {
  const served = await serve();
  const { page } = await openPage({ reducedMotion: 'reduce' });
  await joinBy(page, served.setupLink, 'owner@example.com');
  return { served, page };
}

describe('how it looks', { skip: noBrowser }, () => {
  let served: Served;
  let page: Page;
  before(async () => {
    ({ served, page } = await enter());
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

describe('how full lists look', { skip: noBrowser }, () => {
  let served: Served;
  let page: Page;
  before(async () => {
    ({ served, page } = await enter());
    await fill(page, served.url);
  });
  after(() => endMachines(page, served.url));

  for (const width of [390, 768, 900, 1024, 1200, 1280]) {
    test(`nothing runs over or is cut off at ${width} pixels`, async () => {
      await page.setViewportSize({ width, height: 800 });
      const wrong: string[] = [];
      for (const { path, heading } of pages) {
        await page.goto(`${served.url}/#/${path}`);
        await page.getByRole('heading', { name: heading, exact: true }).waitFor();
        await settle(page);
        await picture(page, `full-${width}-${path.replaceAll(/\W+/g, '-') || 'home'}`);
        if (!(await fits(page))) wrong.push(`/${path} is wider than the screen`);
        const cut = await page.evaluate<string[]>(findCutOff);
        wrong.push(...cut.map((what) => `/${path}: ${what}`));
      }
      assert.deepEqual(wrong, []);
    });
  }

  test('on a phone long names stay inside their dialogs', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${served.url}/#/api-keys`);
    await page.getByRole('button', { name: /^Revoke k/ }).click();
    await page.getByRole('dialog', { name: /^Revoke “k/ }).waitFor();
    await settle(page);
    assert.deepEqual(await page.evaluate(findCutOff), []);
    await page.goto(`${served.url}/#/api-keys/new`);
    await page.getByRole('textbox', { name: 'Label' }).fill('w'.repeat(64));
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('dialog', { name: 'Your new key' }).waitFor();
    await settle(page);
    await picture(page, 'full-390-new-key');
    assert.deepEqual(await page.evaluate(findCutOff), []);
  });

  test('the docs are read on a phone without scrolling sideways', async () => {
    await page.goto(`${served.url}/docs`);
    const tables = `[...document.querySelectorAll('table')]`;
    assert.ok(await page.evaluate(`${tables}.some((table) => /required/.test(table.innerText))`));
    assert.ok(
      await page.evaluate(`${tables}.every((table) => table.scrollWidth <= innerWidth - 32)`),
    );
    assert.ok(await fits(page));
  });
});

/** Names as long as they may be, tags, limits, and a request of each kind. */
async function fill(page: Page, url: string): Promise<void> {
  const post = async (path: string, data: object) => {
    const response = await page.context().request.post(`${url}${path}`, { data });
    assert.equal(response.status(), 200, await response.text());
  };
  const key = await makeKey(page, url, 'importer');
  await post('/dashboard/api/api-keys', {
    label: 'k'.repeat(64),
    limits: { monthly_budget: 20, requests_per_minute: 60 },
  });
  assert.equal((await ask(url, key, { stream: true })).status, 200);
  assert.equal((await ask(url, key, { model: 'no-such-model' })).status, 404);
  await post('/api/v1/ssh-keys', { name: 's'.repeat(64) });
  await post('/api/v1/filesystems', { name: 'f'.repeat(60), region: 'us-west-1' });
  await post('/api/v1/firewall-rulesets', {
    name: 'r'.repeat(64),
    region: 'us-west-1',
    rules: [
      { protocol: 'tcp', port_range: [80, 90], source_network: '203.0.113.0/24', description: '' },
    ],
  });
  await post('/api/v1/instance-operations/launch', {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['s'.repeat(64)],
    name: 'm'.repeat(64),
    tags: [
      { key: 'environment', value: 'production' },
      { key: 'purpose', value: 'v'.repeat(128) },
    ],
  });
  await page.goto(`${url}/#/machines`);
  await page.getByText('active', { exact: true }).waitFor();
  await page.goto(`${url}/#/usage`);
  await until('the request is added up', async () => {
    await page.reload();
    await page.getByRole('tab', { name: 'Over time' }).waitFor();
    await settle(page);
    return (await page.getByRole('table', { name: 'In total' }).count()) === 1;
  });
}

/**
 * Tables that reach out of their frame, dialogs with less than their content, choices and badges with less than
 * their words, keys on two lines.
 */
const findCutOff = `[
  ...[...document.querySelectorAll('[role="dialog"], [role="dialog"] input[readonly]')]
    .filter((element) => element.scrollWidth > element.clientWidth)
    .map((element) => 'in a dialog ' + (element.value ?? element.innerText.slice(0, 80))),
  ...[...document.querySelectorAll('.records')]
    .filter((table) => table.getBoundingClientRect().width > table.parentElement.clientWidth + 0.5)
    .map((table) => 'table ' + table.ariaLabel),
  ...[...document.querySelectorAll('.mantine-Badge-label')]
    .filter((label) => label.scrollWidth > label.clientWidth || label.scrollHeight > label.clientHeight)
    .map((label) => 'badge ' + label.textContent),
  ...[...document.querySelectorAll('[aria-label="API keys"] code')]
    .filter((code) => code.getClientRects().length > 1)
    .map((code) => 'key ' + code.textContent),
]`;

const fits = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth <= innerWidth');
