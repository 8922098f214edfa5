// Every page is accessible and fits the screen, in both color schemes and at several widths, with empty and with
// full lists. With MILLRACE_SCREENSHOTS=<folder> screenshots are saved there.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  colorRules,
  describeInBrowser,
  findViolations,
  fitsWidth,
  openPage,
  screenshot,
  setColorScheme,
  settle,
} from '#test/support/browser.ts';
import {
  createApiKey,
  type Dashboard,
  openDashboard,
  post,
  sendChat,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { inSoak, isSoak } from '#test/support/soak.ts';
import { until } from '#test/support/until.ts';

interface Visited {
  path: string;
  heading: string;
}

const pages: Visited[] = [
  { path: '', heading: 'Home' },
  { path: 'playground', heading: 'Playground' },
  { path: 'api-keys', heading: 'API keys' },
  { path: 'api-keys/new', heading: 'Create API key' },
  { path: 'api-keys/limits', heading: 'Account limits' },
  { path: 'models', heading: 'Models' },
  { path: 'models/pull', heading: 'Pull weights' },
  { path: 'models/add-backend', heading: 'Add backend' },
  { path: 'batches', heading: 'Batches' },
  { path: 'deployments', heading: 'Deployments' },
  { path: 'deployments/-/new', heading: 'Deploy model' },
  { path: 'machines', heading: 'Machines' },
  { path: 'machines/new', heading: 'Launch machine' },
  { path: 'ssh-keys', heading: 'SSH keys' },
  { path: 'ssh-keys/new', heading: 'Add SSH key' },
  { path: 'filesystems', heading: 'Filesystems' },
  { path: 'filesystems/new', heading: 'Create filesystem' },
  { path: 'firewall', heading: 'Firewall' },
  { path: 'firewall/new', heading: 'Create ruleset' },
  { path: 'hosts', heading: 'Hosts' },
  { path: 'hosts/new', heading: 'Add host' },
  { path: 'usage', heading: 'Usage' },
  { path: 'usage/range=custom&by=machine', heading: 'Usage' },
  { path: 'usage/requests', heading: 'Usage' },
  { path: 'models/llama3.1-8b-instruct', heading: 'llama3.1-8b-instruct' },
  { path: 'team', heading: 'Team' },
  { path: 'audit-log', heading: 'Audit log' },
  { path: 'nowhere', heading: 'Page not found' },
];
const schemes = [
  ['light', undefined],
  ['dark', colorRules],
] as const;
const widths = { wide: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } };
/** Rules of axe-core to check; all of them if undefined. */
type Rules = readonly string[] | 'none' | undefined;
type Look = readonly ['light' | 'dark', keyof typeof widths, Rules];
const light: Look = ['light', 'wide', undefined];
const dark: Look = ['dark', 'wide', colorRules];
const phone: Look = ['light', 'phone', inSoak<Rules>('none', undefined)];
const darkPhone: Look = ['dark', 'phone', colorRules];
/** Colors belong to the components, which these pages have between them. */
const inTheDark = [
  '',
  'playground',
  'models',
  'machines/new',
  'usage/range=custom&by=machine',
  'team',
];
/** In this order, a page changes one thing at a time. */
const toLooks = ({ path }: Visited): Look[] =>
  isSoak
    ? [light, dark, darkPhone, phone]
    : [light, ...(inTheDark.includes(path) ? [dark] : []), phone];

describeInBrowser('appearance of every page', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
  });

  // Each page is loaded once. The long form checks all of them in the dark, and with all rules on a phone.
  test('every page is accessible and fits the screen and a phone, and some have readable colors in the dark', async () => {
    assert.deepEqual(await findAllProblems(dashboard, pages), []);
  });

  test('sign-in and invitation pages are accessible, in the dark by their colors', async () => {
    const { page: guest } = await openPage();
    for (const [colorScheme, rules] of schemes) {
      await guest.emulateMedia({ colorScheme });
      await guest.goto(dashboard.url);
      await guest.getByRole('button', { name: 'Sign in' }).waitFor();
      assert.deepEqual(await findViolations(guest, rules), []);
      await guest.goto(dashboard.setupLink);
      await guest.getByRole('heading', { name: 'This link no longer works' }).waitFor();
      assert.deepEqual(await findViolations(guest, rules), []);
    }
  });

  test('a selected color scheme overrides that of the system and is remembered', async () => {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize(widths.wide);
    await page.goto(`${dashboard.url}/#/`);
    await page.getByRole('button', { name: 'Color scheme' }).click();
    await page.getByRole('menuitem', { name: 'Dark' }).click();
    await page.reload();
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    assert.equal(background, 'rgb(11, 15, 17)');
  });

  test('on a phone the navigation opens, and closes once a page is selected', async () => {
    await page.setViewportSize(widths.phone);
    await page.getByRole('button', { name: 'Open navigation' }).click();
    await page.getByRole('link', { name: 'Models', exact: true }).click();
    await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Open navigation' }).waitFor();
  });
});

describeInBrowser('appearance of full lists', () => {
  let dashboard: Dashboard;
  let page: Page;
  let details: Visited[];
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    details = await fill(dashboard);
  });
  after(() => terminateMachines(dashboard));

  test('nothing overflows or is cut off at any width', async () => {
    const problems: string[] = [];
    for (const visited of [...pages, ...details]) {
      const { path } = visited;
      await visit(dashboard, visited);
      for (const width of inSoak([390, 900], [390, 768, 900, 1024, 1200, 1280])) {
        await page.setViewportSize({ width, height: 800 });
        await settle(page);
        await shoot(page, visited, `full-${width}`);
        if (!(await fitsWidth(page))) problems.push(`/${path} is wider than ${width}`);
        const cut = await page.evaluate<string[]>(findCutOff);
        problems.push(...cut.map((what) => `/${path} at ${width}: ${what}`));
      }
    }
    assert.deepEqual(problems, []);
  });

  test('a machine, a key and a request are accessible and fit', async () => {
    assert.deepEqual(await findAllProblems(dashboard, details), []);
  });

  test('on a phone long names stay inside their dialogs', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${dashboard.url}/#/api-keys`);
    await page.getByRole('button', { name: /^Revoke k/ }).click();
    await page.getByRole('dialog', { name: /^Revoke “k/ }).waitFor();
    await settle(page);
    assert.deepEqual(await page.evaluate(findCutOff), []);
    await page.goto(`${dashboard.url}/#/api-keys/new`);
    await page.getByRole('textbox', { name: 'Label' }).fill('w'.repeat(64));
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByRole('dialog', { name: 'Your new API key' }).waitFor();
    await settle(page);
    await screenshot(page, 'full-390-new-key');
    assert.deepEqual(await page.evaluate(findCutOff), []);
  });
});

async function visit({ page, url }: Dashboard, { path, heading }: Visited): Promise<void> {
  await page.goto(`${url}/#/${path}`);
  await page.getByRole('heading', { name: heading, exact: true }).waitFor();
  await settle(page);
}

const shoot = (page: Page, { path }: Visited, group: string) =>
  screenshot(page, `${group}-${path.replaceAll(/\W+/g, '-') || 'home'}`);

async function findAllProblems(dashboard: Dashboard, visits: readonly Visited[]) {
  const { page } = dashboard;
  const problems: string[] = [];
  for (const visited of visits) {
    await visit(dashboard, visited);
    for (const [colorScheme, width, rules] of toLooks(visited)) {
      await page.setViewportSize(widths[width]);
      await setColorScheme(page, colorScheme);
      await shoot(page, visited, `${colorScheme}-${width}`);
      const found = rules === 'none' ? [] : await findViolations(page, rules);
      if (!(await fitsWidth(page))) found.push('it is wider than the screen');
      problems.push(...found.map((what) => `/${visited.path}, ${colorScheme}, ${width}: ${what}`));
    }
  }
  return problems;
}

/** Creates one of everything, with names of the maximum length, and sends a request of each kind. Returns the pages of a
 * machine, an API key and a request. */
async function fill(dashboard: Dashboard): Promise<Visited[]> {
  const { page, url } = dashboard;
  const create = (path: string, data: object) => post(page, `${url}${path}`, data);
  const key = await createApiKey(dashboard, 'importer');
  const longKey = await create('/dashboard/api/api-keys', {
    label: 'k'.repeat(64),
    limits: { monthly_budget: 20, requests_per_minute: 60 },
  });
  const chat = await sendChat(url, key, { stream: true });
  assert.equal(chat.status, 200);
  const requestId = chat.headers.get('x-request-id') ?? '';
  assert.equal((await sendChat(url, key, { model: 'no-such-model' })).status, 404);
  await create('/api/v1/ssh-keys', { name: 's'.repeat(64) });
  await create('/api/v1/filesystems', { name: 'f'.repeat(60), region: 'us-west-1' });
  await create('/api/v1/firewall-rulesets', {
    name: 'r'.repeat(64),
    region: 'us-west-1',
    rules: [
      { protocol: 'tcp', port_range: [80, 90], source_network: '203.0.113.0/24', description: '' },
    ],
  });
  const { data } = await create('/api/v1/instance-operations/launch', {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['s'.repeat(64)],
    name: 'm'.repeat(64),
    tags: [
      { key: 'environment', value: 'production' },
      { key: 'purpose', value: 'v'.repeat(128) },
    ],
  });
  await create('/api/v1/deployments', {
    name: 'd'.repeat(63),
    model: 'hermes3-8b',
    engine: 'command',
    program: '/bin/true',
  });
  await page.goto(`${url}/#/machines`);
  await page.getByText('active', { exact: true }).waitFor();
  await page.goto(`${url}/#/usage`);
  await until('the request is counted', async () => {
    await page.reload();
    await page.getByRole('tab', { name: 'Over time' }).waitFor();
    await settle(page);
    return (await page.getByRole('table', { name: 'Totals' }).count()) === 1;
  });
  return [
    { path: `machines/${data.instance_ids[0]}`, heading: 'm'.repeat(64) },
    { path: `api-keys/${longKey.id}`, heading: 'k'.repeat(64) },
    { path: `usage/requests/${requestId}`, heading: `Request …${requestId.slice(-12)}` },
  ];
}

/** Finds tables wider than their frame, dialogs, selects and badges that cut off text, and keys on two lines. */
const findCutOff = `[
  ...[...document.querySelectorAll('[role="dialog"], [role="dialog"] input[readonly]')]
    .filter((element) => element.scrollWidth > element.clientWidth)
    .map((element) => 'in a dialog ' + (element.value ?? element.innerText.slice(0, 80))),
  ...[...document.querySelectorAll('.data-table')]
    .filter((table) => table.getBoundingClientRect().width > table.parentElement.clientWidth + 0.5)
    .map((table) => 'table ' + table.ariaLabel),
  ...[...document.querySelectorAll('.mantine-Badge-label')]
    .filter((label) => label.scrollWidth > label.clientWidth || label.scrollHeight > label.clientHeight)
    .map((label) => 'badge ' + label.textContent),
  ...[...document.querySelectorAll('[aria-label="API keys"] code')]
    .filter((code) => code.getClientRects().length > 1)
    .map((code) => 'key ' + code.textContent),
]`;
