// Takes the README's screenshots from a running server into docs/images/: `node tools/screenshots.ts`. It needs Chromium.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const target = join(root, 'docs/images');
const model = 'llama3.1-8b-instruct';

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
  mkdirSync(target, { recursive: true });
  const page = await (
    await browser.newContext({ viewport: { width: 1280, height: 800 } })
  ).newPage();
  await signUp(page, link);
  for (let index = 0; index < 12; index += 1) await chat(url, key, index);
  await take(page, `${url}/#/`, 'dashboard');
  await take(page, `${url}/#/models`, 'models');
} finally {
  await browser.close();
  server.kill();
  rmSync(data, { recursive: true, force: true });
}

async function readStartTable({ stdout }: ChildProcess): Promise<{ link: string; key: string }> {
  let table = '';
  for await (const text of stdout ?? []) {
    table += text;
    if (table.includes('API docs')) break;
  }
  return {
    link: /Set-up link\s+(\S+)/.exec(table)?.[1] ?? '',
    key: /First API key\s+(\S+)/.exec(table)?.[1] ?? '',
  };
}

async function signUp(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel('Email').fill('ada@example.com');
  await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
}

async function chat(url: string, key: string, index: number): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      max_tokens: 24,
      messages: [{ role: 'user', content: `What is a millrace? (${index})` }],
    }),
  });
  await response.text();
}

async function take(page: Page, url: string, name: string): Promise<void> {
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  await page.locator('h1').first().waitFor();
  await page.screenshot({ path: join(target, `${name}.png`) });
}
