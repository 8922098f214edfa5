// A real browser on a real server, for tests that see the dashboard as a person does.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { makeFolder, serveMillrace } from './process.ts';
import { until } from './until.ts';

export const password = 'correct horse battery';

const usualPlaces = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...usualPlaces].find(
  (path) => path !== '' && existsSync(path),
);

/** Why browser tests can't run, or false. Where every test must run, that is a failure instead. */
export const noBrowser =
  executablePath === undefined ? 'no Chromium: install one, or name it by CHROMIUM_PATH' : false;
if (noBrowser && process.env.CI === 'true') throw new Error(noBrowser);

const cleanups: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

export interface Served {
  url: string;
  setupLink: string;
  dataDir: string;
}

/** The model is only loaded when it is asked: most of these tests never do. */
export async function serve(args: string[] = []): Promise<Served> {
  const config = join(makeFolder(), 'millrace.yaml');
  writeFileSync(config, 'inference:\n  preload: false\n');
  const { url, dataDir, stdout } = await serveMillrace(['--config', config, ...args]);
  return { url, setupLink: findSetupLink(stdout()), dataDir };
}

export const findSetupLink = (table: string) => /Set-up link +(\S+)/.exec(table)?.[1] ?? '';

let browser: Promise<Browser> | undefined;

/** A browser of its own: other people's cookies are not in it. */
export async function openPage(options: BrowserContextOptions = {}): Promise<Watched> {
  browser ??= launch();
  const context = await (await browser).newContext(options);
  // Generous: on a busy machine a page takes its time, and one that works never waits for long.
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // A refused request is logged by the browser itself and is part of some tests.
    if (message.type() !== 'error' || message.text().startsWith('Failed to load resource')) return;
    complaints.push(message.text());
  });
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  return { page, complaints, hosts };
}

export interface Watched {
  page: Page;
  /** Errors in the console, such as what the content security policy forbade. */
  complaints: string[];
  /** Everything the page talked to. */
  hosts: Set<string>;
}

async function launch(): Promise<Browser> {
  const launched = await chromium.launch({
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
  cleanups.push(() => launched.close());
  return launched;
}

/** Fills in the form that a set-up link or an invitation leads to, and waits for the home page. */
export async function joinBy(page: Page, link: string, email: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
}

/** Machines outlive the server that made them: a test that failed half-way must not leave any. */
export async function endMachines(page: Page, url: string): Promise<void> {
  const { request } = page.context();
  const list = async () => {
    const { data } = await (await request.get(`${url}/api/v1/instances`)).json();
    return (data as { id: string }[]).map(({ id }) => id);
  };
  const terminate = `${url}/api/v1/instance-operations/terminate`;
  await request.post(terminate, { data: { instance_ids: await list() } });
  await until('the machines are gone', async () => (await list()).length === 0);
}

/** A new key of the account, by the session of the page. */
export async function makeKey(page: Page, url: string, label: string): Promise<string> {
  const response = await page
    .context()
    .request.post(`${url}/dashboard/api/api-keys`, { data: { label } });
  return (await response.json()).key;
}

/** Asks a model for a few words, as a program does. */
export async function ask(
  url: string,
  key: string,
  { model = 'llama3.1-8b-instruct', stream = false } = {},
): Promise<Response> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model,
      stream,
      max_tokens: 8,
      messages: [{ role: 'user', content: 'What is a millrace?' }],
    }),
  });
  await response.clone().arrayBuffer();
  return response;
}

/** The same picture in both schemes and on a phone, each of them accessible. */
export async function look(page: Page, name: string): Promise<void> {
  const wide = page.viewportSize() ?? { width: 1280, height: 800 };
  for (const colorScheme of ['light', 'dark'] as const) {
    await wear(page, colorScheme);
    await picture(page, `${name}-${colorScheme}`);
    assert.deepEqual(await findViolations(page), [], `${name} in ${colorScheme}`);
  }
  await wear(page, 'light');
  await page.setViewportSize({ width: 390, height: 780 });
  await settle(page);
  await picture(page, `${name}-phone`);
  assert.deepEqual(await findViolations(page), [], `${name} on a phone`);
  assert.ok(
    await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
    `${name} is wider than a phone`,
  );
  await page.setViewportSize(wide);
  await settle(page);
}

/** Waits until the page has noticed the scheme and its colours have come to rest. */
async function wear(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor();
  await settle(page);
}

/** What axe-core calls serious or critical. */
export async function findViolations(page: Page): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  return page.evaluate(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`);
}

/** Left in the folder that MILLRACE_SCREENSHOTS names, to be looked at. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.MILLRACE_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** Lists have arrived and dialogs have finished opening. */
export async function settle(page: Page): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await page.evaluate(isSettled))) {
    assert.ok(Date.now() < deadline, `${page.url()} does not come to rest`);
    await setTimeout(20);
  }
}

const isSettled = `document.querySelector('[aria-busy="true"]') === null &&
  document.getAnimations().every(({ playState }) => playState === 'finished')`;
