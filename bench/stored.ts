// The event-loop delay of the server while it stores responses of the Responses API, and while it does not.
// Usage: node bench/stored.ts [responses per second] [seconds], by default 200 for 15 seconds each.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startScriptedUpstream } from '../src/inference/engines/scripted/server.ts';
import { createServers, key, listening } from './gateway/servers.ts';

const [perSecond = 200, seconds = 15] = process.argv.slice(2).map(Number);
const port = 18_088;
const model = 'llama3.1-8b-instruct';
/** Words of a response of 20 KB. */
const words = 4_000;

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const upstream = await startScriptedUpstream({ words });
const { start } = createServers();
const config = join(folder, 'bench.yaml');
const backends = [{ name: 'scripted', url: upstream.url, server: 'vllm' }];
writeFileSync(config, JSON.stringify({ models: { catalog: { [model]: { backends } } } }));
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
process.exit(0);

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
  const startMs = performance.now();
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const options = { port, path: '/v1/responses', method: 'POST', agent, headers };
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
      response.resume().on('end', () => resolve(performance.now() - startMs));
    });
    sent.on('error', reject).end(JSON.stringify({ model, input: 'Go', store }));
  });
}

/** The delays since the last call: reading the metrics resets them. */
async function readLag(): Promise<string> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const ms = (name: string) =>
    Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (.+)$`, 'm').exec(text)?.[1]) * 1000;
  return `event-loop delay p50 ${ms('p50').toFixed(1)} ms, p99 ${ms('p99').toFixed(1)} ms, max ${ms('max').toFixed(0)} ms`;
}
