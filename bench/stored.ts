// The event-loop delay of the server while it stores responses of the Responses API, and while it does not; and the next
// turn of a long conversation of stored responses beside that of a short one.
// Usage: node bench/stored.ts [responses per second] [seconds], by default 200 for 15 seconds each.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { startScriptedUpstream } from '../src/inference/engines/scripted/server.ts';
import { createServers, key, listening } from './gateway/servers.ts';

const [perSecond = 200, seconds = 15] = process.argv.slice(2).map(Number);
const port = 18_088;
const model = 'llama3.1-8b-instruct';
const briefModel = 'llama3.2-3b-instruct';
/** Words of a response of 20 KB. */
const words = 4_000;

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const upstream = await startScriptedUpstream({ words });
const { start } = createServers();
const config = join(folder, 'bench.yaml');
const brief = await startScriptedUpstream({ words: 5 });
const toEntry = ({ url }: { url: string }) => ({
  backends: [{ name: 'scripted', url, server: 'vllm' }],
});
const catalog = { [model]: toEntry(upstream), [briefModel]: toEntry(brief) };
writeFileSync(config, JSON.stringify({ models: { catalog } }));
start(
  join(import.meta.dirname, '../millrace'),
  ['serve', '--config', config, '--port', String(port), '--data-dir', join(folder, 'data')],
  { MILLRACE_API_KEY: key },
);
await listening(port);
const agent = new Agent({ keepAlive: true });

for (const store of [false, true, false, true]) {
  await readLag();
  const times = await sendAtRate(store);
  const [p50 = 0, p99 = 0] = [0.5, 0.99].map((part) => times[Math.floor(times.length * part)]);
  console.log(
    `${store ? 'stored' : 'not stored'}: ${times.length} responses in p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; ${await readLag()}`,
  );
}
await compareTurns();
process.exit(0);

/** In turns, so that what else happens on the machine delays both alike. */
async function compareTurns(): Promise<void> {
  const lengths = [2, 200];
  const last = await Promise.all(lengths.map(converse));
  const times: number[][] = lengths.map(() => []);
  for (let round = 0; round < 200; round++)
    for (const [index, previous] of last.entries())
      times[index]?.push(await timeOf(() => sendTurn(previous, false)));
  for (const [index, length] of lengths.entries()) {
    const sorted = times[index]?.sort((a, b) => a - b) ?? [];
    console.log(
      `next turn after ${length} stored responses: p50 ${sorted[100]?.toFixed(1)} ms, least ${sorted[0]?.toFixed(1)} ms`,
    );
  }
}

/** The prompt of the next turn is equally long after every conversation: a short one begins with what it lacks. */
async function converse(length: number): Promise<string | null> {
  const exchange = [
    { role: 'user', content: 'Go on' },
    { role: 'assistant', content: 'one two three four five' },
  ];
  const earlier = Array.from({ length: 200 - length }, () => exchange).flat();
  let previous: string | null = null;
  for (let turn = 0; turn < length; turn++)
    previous = (await sendTurn(previous, true, turn === 0 ? earlier : [])).id;
  return previous;
}

function sendTurn(
  previous: string | null,
  store: boolean,
  earlier: readonly object[] = [],
): Promise<{ id: string }> {
  const input = [...earlier, { role: 'user', content: 'Go on' }];
  return send({ model: briefModel, input, previous_response_id: previous, store });
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** Returns the milliseconds that each response took, sorted. */
async function sendAtRate(store: boolean): Promise<number[]> {
  const running: Promise<number>[] = [];
  const startMs = performance.now();
  while (running.length < perSecond * seconds) {
    const due = ((performance.now() - startMs) / 1000) * perSecond;
    while (running.length < due) running.push(ask(store));
    await pause(5);
  }
  return (await Promise.all(running)).sort((a, b) => a - b);
}

function ask(store: boolean): Promise<number> {
  return timeOf(() => send({ model, input: 'Go', store }));
}

function send(body: object): Promise<{ id: string }> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const options = { port, path: '/v1/responses', method: 'POST', agent, headers };
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
      text(response).then((received) => resolve(JSON.parse(received)), reject);
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

/** The delays since the last call: reading the metrics resets them. */
async function readLag(): Promise<string> {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const ms = (name: string) =>
    Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (.+)$`, 'm').exec(metrics)?.[1]) *
    1000;
  return `event-loop delay p50 ${ms('p50').toFixed(1)} ms, p99 ${ms('p99').toFixed(1)} ms, max ${ms('max').toFixed(0)} ms`;
}
