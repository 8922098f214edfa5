// The event-loop delay of the server while it stores responses of the Responses API, and while it does not; and the next
// turn of a long conversation of stored responses beside that of a short one.
// Usage: node bench/stored.ts [responses per second] [seconds], by default 200 for 15 seconds each, and then the turns;
// or node bench/stored.ts turns [rounds], by default 1000, for the turns alone.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { startScriptedUpstream } from '../src/inference/engines/scripted/server.ts';
import { quantile } from './gateway/load.ts';
import { createServers, key, listening } from './gateway/servers.ts';

const asked = process.argv.slice(2);
const turnsAlone = asked[0] === 'turns';
const [perSecond = 200, seconds = 15] = turnsAlone ? [] : asked.map(Number);
const rounds = Number((turnsAlone ? asked[1] : undefined) ?? 1_000);
/** Not counted: both kinds of turns have to be compiled. */
const warmUpRounds = 200;
const port = 18_088;
const model = 'llama3.1-8b-instruct';
const briefModel = 'llama3.2-3b-instruct';
const goOn = { role: 'user', content: 'Go on' };
/** Words of a response of 20 KB. */
const words = 4_000;

interface Sent {
  readonly id: string;
  readonly output: readonly object[];
}

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

for (const store of turnsAlone ? [] : [false, true, false, true]) {
  await readLag();
  const times = await sendAtRate(store);
  const [p50, p99] = [0.5, 0.99].map((part) => quantile(times, part).toFixed(1));
  console.log(
    `${store ? 'stored' : 'not stored'}: ${times.length} responses in p50 ${p50} ms, p99 ${p99} ms; ${await readLag()}`,
  );
}
await compareTurns();
process.exit(0);

/** In turns and in both orders, so that what else happens on the machine delays both alike. */
async function compareTurns(): Promise<void> {
  const lengths = [2, 200];
  const kinds = await Promise.all(
    lengths.map(async (length) => ({
      length,
      last: await converse(length),
      times: [] as number[],
    })),
  );
  for (let round = -warmUpRounds; round < rounds; round++)
    for (const { last, times } of round % 2 === 0 ? kinds : kinds.toReversed()) {
      const ms = await timeOf(() => sendTurn(last, false));
      if (round >= 0) times.push(ms);
    }
  for (const { length, times } of kinds)
    console.log(
      `next turn after ${length} stored responses: p50 ${quantile(times, 0.5).toFixed(2)} ms, least ${quantile(times, 0).toFixed(2)} ms`,
    );
  const [short = [], long = []] = kinds.map(({ times }) => times);
  const ratios = long.map((ms, round) => ms / (short[round] ?? ms));
  console.log(`ratio of a round, p50: ${quantile(ratios, 0.5).toFixed(3)} (goal 1)`);
}

/** Stores 200 turns, or their items in fewer responses: the first of them begins with all that the others lack. */
async function converse(length: number): Promise<string | null> {
  const { output } = await sendTurn(null, false);
  const earlier = Array.from({ length: 200 - length }, () => [goOn, ...output]).flat();
  let previous: string | null = null;
  for (let turn = 0; turn < length; turn++)
    previous = (await sendTurn(previous, true, turn === 0 ? earlier : [])).id;
  return previous;
}

function sendTurn(
  previous: string | null,
  store: boolean,
  earlier: readonly object[] = [],
): Promise<Sent> {
  const input = [...earlier, goOn];
  return send({ model: briefModel, input, previous_response_id: previous, store });
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** Returns the milliseconds that each response took. */
async function sendAtRate(store: boolean): Promise<number[]> {
  const running: Promise<number>[] = [];
  const startMs = performance.now();
  while (running.length < perSecond * seconds) {
    const due = ((performance.now() - startMs) / 1000) * perSecond;
    while (running.length < due) running.push(ask(store));
    await pause(5);
  }
  return Promise.all(running);
}

function ask(store: boolean): Promise<number> {
  return timeOf(() => send({ model, input: 'Go', store }));
}

function send(body: object): Promise<Sent> {
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
