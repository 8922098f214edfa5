// The dashboard in Chromium: the largest contentful paint, the bytes and the long tasks of every page, each with an empty
// cache; and the long tasks while a long answer with code, tables and maths streams into the playground.
// Usage: node bench/dashboard.ts [rounds]. Set CHROMIUM_PATH if Chromium is not at /usr/bin/chromium.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const port = 18_086;
const url = `http://127.0.0.1:${port}`;
const rounds = Number(process.argv[2] ?? 3);
const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));

const pages = [
  '',
  'playground',
  'models',
  'models/talker',
  'deployments',
  'batches',
  'api-keys',
  'usage',
  'usage/requests',
  'machines',
  'machines/new',
  'ssh-keys',
  'filesystems',
  'firewall',
  'hosts',
  'team',
  'audit-log',
];

const section = (number: number) => `## Step ${number}: sort *all* the rows

A **stable** sort keeps equal rows in their order, see [the docs](https://example.com/${number}). It costs $5, and
takes $O(n \\log n)$ time with \`sorted\`, which most people choose.

1. Read the file with \`open\`, and close it.
2. Split it into lines; each has ${number} columns.
3. Sort them by the **second** column.

\`\`\`python
import csv
from pathlib import Path


def read_rows(path: Path, column: int = ${number}) -> list[list[str]]:
    """Return the rows of a file, sorted by one of its columns."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) > column]
    return sorted(rows, key=lambda row: (row[column].lower(), row[0]))


for index, row in enumerate(read_rows(Path("rows.csv"))):
    print(f"{index:>4}  {' | '.join(row)}")
\`\`\`

| algorithm | time | memory | stable |
|---|---|---|---|
| merge sort | n log n | n | yes |
| heap sort | n log n | 1 | no |
| quick sort | n log n | log n | no |

$$
T(n) = 2\\,T\\left(\\frac{n}{2}\\right) + \\Theta(n)
$$

> The constant matters only for short lists: below ${number + 16} rows, insertion sort is faster.

`;

const answer = Array.from({ length: 25 }, (_, index) => section(index + 1)).join('');
/** About a token each. */
const pieces = answer.match(/[\s\S]{1,5}/g) ?? [];

/** Streams the answer at about 500 tokens a second. */
async function startUpstream(): Promise<string> {
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    if (!request.url?.endsWith('/chat/completions')) {
      response.setHeader('content-type', 'application/json');
      response.end('{"object":"list","data":[{"id":"talker"}]}');
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    const send = (choice: object) => {
      const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'talker' };
      response.write(
        `data: ${JSON.stringify({ ...head, choices: [{ index: 0, ...choice }] })}\n\n`,
      );
    };
    for (const [index, content] of pieces.entries()) {
      send({ delta: { content }, finish_reason: null });
      if (index % 5 === 0) await setTimeout(10);
    }
    send({ delta: {}, finish_reason: 'stop' });
    response.end('data: [DONE]\n\n');
  }).listen(0, '127.0.0.1');
  server.unref();
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

async function startServer(upstream: string): Promise<{ server: ChildProcess; token: string }> {
  const config = join(folder, 'millrace.yaml');
  const backends = `[{ name: bench, url: "${upstream}" }]`;
  writeFileSync(config, `models:\n  catalog:\n    talker: { backends: ${backends} }\n`);
  const args = ['--port', String(port), '--data-dir', folder, '--config', config];
  const server = spawn(join(import.meta.dirname, '..', 'millrace'), ['serve', ...args]);
  let output = '';
  for await (const chunk of server.stdout) {
    output += chunk;
    // The output is no terminal, so the link is in a file. Other lines follow this one.
    const file = /Set-up link +in the file (.+)\n/.exec(output)?.[1];
    if (file === undefined) continue;
    const link = readFileSync(file, 'utf8').trim();
    return { server, token: link.slice(link.lastIndexOf('/') + 1) };
  }
  throw new Error(`the server ended: ${output}`);
}

/** Runs in the page before its own code. */
const observe = `
  window.seen = { lcp: 0, tasks: [] };
  new PerformanceObserver((list) => {
    window.seen.lcp = list.getEntries().at(-1).startTime;
  }).observe({ type: 'largest-contentful-paint', buffered: true });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.seen.tasks.push(duration);
  }).observe({ type: 'longtask', buffered: true });`;

interface Seen {
  lcp: number;
  tasks: number[];
  bytes: number;
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const sum = (values: number[]) => values.reduce((before, value) => before + value, 0);

async function settle(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  const isBusy = 'document.querySelector("[aria-busy=true]") !== null';
  while (await page.evaluate<boolean>(isBusy)) await setTimeout(20);
  await setTimeout(500);
}

type State = Awaited<ReturnType<BrowserContext['storageState']>>;

async function visit(browser: Browser, state: State, path: string): Promise<Seen> {
  const context = await browser.newContext({
    storageState: state,
    viewport: { width: 1280, height: 800 },
  });
  const page = await context.newPage();
  await page.addInitScript(observe);
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  let bytes = 0;
  network.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await page.goto(`${url}/#/${path}`);
  await settle(page);
  const seen = (await page.evaluate('window.seen')) as Omit<Seen, 'bytes'>;
  await context.close();
  return { ...seen, bytes };
}

async function measurePages(browser: Browser, state: State): Promise<void> {
  console.log('page               LCP (ms)   bytes (kB)   longest task (ms)   all long tasks (ms)');
  for (const path of pages) {
    const visits: Seen[] = [];
    for (let round = 0; round < rounds; round++) visits.push(await visit(browser, state, path));
    const figures = [
      median(visits.map(({ lcp }) => lcp)),
      median(visits.map(({ bytes }) => bytes / 1000)),
      median(visits.map(({ tasks }) => Math.max(0, ...tasks))),
      median(visits.map(({ tasks }) => sum(tasks))),
    ].map((value) => value.toFixed(0));
    const [lcp = '', bytes = '', longest = '', all = ''] = figures;
    const name = path || 'home';
    console.log(
      `${name.padEnd(16)}${lcp.padStart(11)}${bytes.padStart(13)}${longest.padStart(20)}${all.padStart(22)}`,
    );
  }
}

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  args: { name?: string };
  /** Microseconds of CPU. */
  tdur?: number;
}

/** The most CPU time of a task in a page's main thread. Other processes don't lengthen it. */
function toLongestCpuMs(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] };
  const toThread = ({ pid, tid }: TraceEvent) => `${pid}:${tid}`;
  const mains = new Set(
    traceEvents.filter(({ args }) => args.name === 'CrRendererMain').map(toThread),
  );
  const isTask = (event: TraceEvent) =>
    event.name.endsWith('RunTask') && mains.has(toThread(event));
  return traceEvents
    .filter(isTask)
    .reduce((longest, { tdur = 0 }) => Math.max(longest, tdur / 1000), 0);
}

async function measureStream(browser: Browser, state: State): Promise<void> {
  const context = await browser.newContext({
    storageState: state,
    viewport: { width: 1280, height: 800 },
  });
  const page = await context.newPage();
  await page.addInitScript(observe);
  for (let round = 0; round < rounds; round++) {
    await page.goto('about:blank');
    await page.goto(`${url}/#/playground?model=talker`);
    await page.locator('input[value="talker"]').first().waitFor();
    await settle(page);
    await page.getByLabel('Message', { exact: true }).fill('How do I sort?');
    await page.evaluate('window.seen.tasks.length = 0');
    await browser.startTracing(page, { categories: ['toplevel'] });
    await page.keyboard.press('Enter');
    // Found by a class: a search for text would itself be the longest task.
    await page.locator('.turns[aria-busy="true"]').waitFor();
    await page.locator('.turns[aria-busy="false"]').waitFor({ timeout: 120_000 });
    await setTimeout(1000);
    const cpu = toLongestCpuMs(await browser.stopTracing());
    const tasks = ((await page.evaluate('window.seen.tasks')) as number[]).map(Math.round);
    const longest = Math.max(0, ...tasks);
    console.log(
      `stream of ${pieces.length} tokens: longest task ${longest} ms (${cpu.toFixed(0)} ms of CPU), ${tasks.length} over 50 ms, ${sum(tasks)} ms in all`,
    );
  }
  await context.close();
}

const { server, token } = await startServer(await startUpstream());
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
try {
  const context = await browser.newContext();
  const data = { token, email: 'owner@example.com', password: 'correct horse battery' };
  const joined = await context.request.post(`${url}/dashboard/api/join`, { data });
  if (!joined.ok()) throw new Error(await joined.text());
  const state = await context.storageState();
  await measurePages(browser, state);
  await measureStream(browser, state);
} finally {
  await browser.close();
  server.kill();
  await once(server, 'exit');
  rmSync(folder, { recursive: true });
}
