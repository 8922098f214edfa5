// Takes the README's screenshots from a running server into docs/images/: `node tools/screenshots.ts`. It needs Chromium.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const target = join(root, 'docs/images');
// A model for each request, so that the pages show traffic of several.
const models = Array.from({ length: 24 }, (_, index) =>
  index % 3 === 0 ? 'hermes3-8b' : 'llama3.1-8b-instruct',
);

const data = mkdtempSync(join(tmpdir(), 'millrace-screenshots-'));
const server = spawn(join(root, 'millrace'), ['serve', '--port', '0', '--data-dir', data], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'ignore'],
});
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
try {
  const { link, key } = await readStartTable(server);
  const url = new URL(link).origin;
  try {
    await takeAll(link, [url, key]);
  } finally {
    await terminateMachines([url, key]);
  }
} finally {
  await browser.close();
  server.kill();
  rmSync(data, { recursive: true, force: true });
}

async function takeAll(link: string, [url, key]: [string, string]): Promise<void> {
  mkdirSync(target, { recursive: true });
  const page = await (
    await browser.newContext({ viewport: { width: 1280, height: 800 } })
  ).newPage();
  await signUp(page, link);
  for (const [index, model] of models.entries()) await chat([url, key], model, index);
  await launch([url, key]);
  await page.goto(`${url}/#/models`);
  await page.getByRole('link', { name: 'hermes3-8b' }).waitFor();
  await take(page, 'models');
  await page.goto(`${url}/#/`);
  await page.getByText(`${models.length} in 24 hours`).waitFor();
  await take(page, 'dashboard');
}

async function readStartTable({ stdout }: ChildProcess): Promise<{ link: string; key: string }> {
  let table = '';
  for await (const text of stdout ?? []) {
    table += text;
    if (table.includes('API docs')) break;
  }
  // The output is no terminal, so both are in files.
  const read = (name: string) =>
    readFileSync(new RegExp(`${name}\\s+in the file (.+)`).exec(table)?.[1] ?? '', 'utf8').trim();
  return { link: read('Set-up link'), key: read('First API key') };
}

async function signUp(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel('Email').fill('ada@example.com');
  await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
}

async function chat([url, key]: [string, string], model: string, index: number): Promise<void> {
  await post([url, key], '/v1/chat/completions', {
    model,
    max_tokens: 24,
    messages: [{ role: 'user', content: `What is a millrace? (${index})` }],
  });
}

/** Launches a machine and waits until it is active. */
async function launch(server: [string, string]): Promise<void> {
  await post(server, '/api/v1/ssh-keys', { name: 'laptop' });
  await post(server, '/api/v1/instance-operations/launch', {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['laptop'],
    name: 'trainer-1',
  });
  for (let status = ''; status !== 'active'; await setTimeout(500)) {
    [{ status } = { status: 'gone' }] = await listMachines(server);
    if (!['booting', 'active'].includes(status)) throw new Error(`The machine is ${status}.`);
  }
}

/** Machines outlive the server that launched them. */
async function terminateMachines(server: [string, string]): Promise<void> {
  const machines = await listMachines(server);
  if (machines.length === 0) return;
  await post(server, '/api/v1/instance-operations/terminate', {
    instance_ids: machines.map(({ id }) => id),
  });
  while ((await listMachines(server)).length > 0) await setTimeout(500);
}

async function listMachines([url, key]: [string, string]) {
  const response = await fetch(`${url}/api/v1/instances`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return ((await response.json()) as { data: { id: string; status: string }[] }).data;
}

async function post([url, key]: [string, string], path: string, body: object): Promise<void> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
}

async function take(page: Page, name: string): Promise<void> {
  await page.waitForLoadState('networkidle');
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(target, `${name}.png`), animations: 'disabled' });
}
