// A real browser on a real server, for tests that see the dashboard as a person does.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

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
  /** The first API key. */
  key: string;
}

/** Starts the server as people do, from a checkout, on a free port and with an empty data directory. */
export async function serve(checkout = join(import.meta.dirname, '../..')): Promise<Served> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-dashboard-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  const child = spawn(
    process.execPath,
    [join(checkout, 'src/main.js'), 'serve', '--port', '0', '--data-dir', dataDir],
    { cwd: dataDir, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  cleanups.push(() => stop(child));
  const printed = await readUntil(child, /API docs/);
  const find = (pattern: RegExp) => pattern.exec(printed)?.[1] ?? '';
  return {
    url: find(/Dashboard +(\S+)/),
    setupLink: find(/Set-up link +(\S+)/),
    key: find(/First API key +(\S+)/),
  };
}

async function readUntil(child: ChildProcess, end: RegExp): Promise<string> {
  let printed = '';
  for await (const text of child.stdout ?? []) {
    printed += text;
    if (end.test(printed)) return printed;
  }
  throw new Error(`the server ended early: ${printed}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await ended;
}

let browser: Promise<Browser> | undefined;

/** A browser of its own: other people's cookies are not in it. */
export async function openPage(options: BrowserContextOptions = {}): Promise<Watched> {
  browser ??= launch();
  const context = await (await browser).newContext(options);
  context.setDefaultTimeout(15_000);
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
