// Millrace as a gateway, with keys, limits and metering on, beside bare pass-throughs and another gateway:
// requests and streams per second, what it adds to the first byte, many slow streams, very long prompts.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { atRate, once, peakRate, quantile, type Target, type Timing } from './gateway/load.ts';

const key = 'bench-key-that-is-long-enough-123456';
/** Many and short: two of them, one after the other, may differ by half. */
const rounds = Number(process.argv[2] ?? 24);
const seconds = Number(process.argv[3] ?? 1);
/** For each target before it is measured: the larger a program, the longer until all of it is compiled. */
const warmUpSeconds = 12;
const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
const ports = {
  upstream: 18_090,
  slow: 18_091,
  ours: 18_092,
  fastify: 18_093,
  http: 18_094,
  portkey: 18_095,
  fresh: 18_096,
};

const children: ChildProcess[] = [];
process.once('exit', () => {
  for (const child of children) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

const ours: Target = {
  name: 'millrace',
  port: ports.ours,
  headers: { authorization: `Bearer ${key}` },
};
const bareFastify: Target = { name: 'bare Fastify + undici', port: ports.fastify, headers: {} };
const bareHttp: Target = { name: 'bare node:http + undici', port: ports.http, headers: {} };
const straight: Target = { name: 'straight from the upstream', port: ports.upstream, headers: {} };
const portkey: Target = {
  name: 'Portkey 1.15.2',
  port: ports.portkey,
  headers: {
    authorization: 'Bearer none',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${ports.upstream}/v1`,
  },
};

function start(file: string, ...args: (string | number)[]): ChildProcess {
  const child = spawn(process.execPath, [file, ...args.map(String)], { stdio: 'ignore' });
  children.push(child);
  return child;
}

function startOurs(port: number): ChildProcess {
  const backend = (port: number) =>
    `{ name: upstream, url: "http://127.0.0.1:${port}/v1", model: org/model, server: vllm }`;
  const data = mkdtempSync(join(folder, 'data-'));
  const config = join(data, 'millrace.yaml');
  writeFileSync(
    config,
    [
      'limits:',
      '  account: { requests_per_minute: 100000000, tokens_per_minute: 1000000000, concurrent_requests: 100000, monthly_budget: 1000000 }',
      'models:',
      '  catalog:',
      `    hermes3-8b: { backends: [${backend(ports.upstream)}] }`,
      `    hermes3-70b: { backends: [${backend(ports.slow)}] }`,
      // Half a million tokens: a prompt of 1 MB fits, but only a count can tell.
      `    long: { context_window: 524288, vocabulary: llama3, backends: [${backend(ports.upstream)}] }`,
    ].join('\n'),
  );
  const child = spawn(
    join(root, 'millrace'),
    ['serve', '--port', String(port), '--data-dir', data, '--config', config],
    { env: { ...process.env, MILLRACE_API_KEY: key }, stdio: ['ignore', 'ignore', 'ignore'] },
  );
  children.push(child);
  return child;
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 2000; tries++) {
    try {
      await fetch(`http://127.0.0.1:${port}/v1/models`);
      return;
    } catch {
      await new Promise((done) => setTimeout(done, 10));
    }
  }
  throw new Error(`nothing listens on ${port}`);
}

const toBody = (stream: boolean, model = 'hermes3-8b', user?: 'apart') =>
  JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'You answer briefly.' },
      { role: 'user', content: 'How many rivers meet at the old mill, and what are they called?' },
    ],
    temperature: 0.7,
    max_tokens: 256,
    ...(stream && { stream: true }),
    user,
  });

type Rates = Map<Target, number[]>;

/**
 * All targets in turns, so that what else happens on the machine hits each alike, and every other time in the
 * opposite order: who comes after one that kept the machine busy may find it slower.
 */
function inTurns(targets: Target[], body: string): Rates {
  const rates: Rates = new Map(targets.map((target) => [target, []]));
  for (const target of targets) peakRate(target, body, warmUpSeconds, folder);
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? targets : targets.toReversed();
    for (const target of order) rates.get(target)?.push(peakRate(target, body, seconds, folder));
  }
  return rates;
}

const median = (values: readonly number[]) => quantile(values, 0.5);

const show = (rates: Rates) => {
  for (const [{ name }, values] of rates) console.log(`  ${name}: ${median(values).toFixed(0)}/s`);
};

/** The median of what each turn gives: between two turns the machine may be another. */
function ratio(rates: Rates, other: Target): string {
  const theirs = rates.get(other) ?? [];
  const each = (rates.get(ours) ?? []).map((rate, turn) => rate / (theirs[turn] ?? 1));
  return median(each).toFixed(2);
}

/** Two hundred a second: a burst would measure how fast they begin. */
async function openSlowly(target: Target, body: string): Promise<Promise<Timing>[]> {
  const running: Promise<Timing>[] = [];
  for (let count = 0; count < 1000; count++) {
    running.push(once(target, body));
    if (count % 4 === 3) await new Promise((done) => setTimeout(done, 20));
  }
  return running;
}
const residentMb = (child: ChildProcess) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;

/** Of the server that was just started. */
async function readGauge(name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${ports.fresh}/metrics`)).text();
  return Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1]);
}

const upstream = start(join(import.meta.dirname, 'gateway/upstream.ts'), ports.upstream, 50, 0);
start(join(import.meta.dirname, 'gateway/upstream.ts'), ports.slow, 100, 200);
start(join(import.meta.dirname, 'gateway/bare-fastify.ts'), ports.fastify, ports.upstream);
const bare = start(join(import.meta.dirname, 'gateway/bare-http.ts'), ports.http, ports.upstream);
start(
  join(import.meta.dirname, 'node_modules/@portkey-ai/gateway/build/start-server.js'),
  `--port=${ports.portkey}`,
  '--headless',
);
const gateway = startOurs(ports.ours);
for (const port of Object.values(ports)) if (port !== ports.fresh) await listening(port);

console.log('Plain chat, requests per second at 32 connections');
const plain = inTurns([straight, ours, bareFastify, bareHttp, portkey], toBody(false));
show(plain);
console.log(
  `  ÷ Portkey ${ratio(plain, portkey)} (goal 8), ÷ bare Fastify ${ratio(plain, bareFastify)} (goal 1)`,
);

console.log('Streams of 50 chunks, streams per second at 32 connections');
const streams = inTurns([straight, ours, bareHttp], toBody(true));
show(streams);
console.log(`  ÷ bare node:http ${ratio(streams, bareHttp)} (goal 0.6)`);

console.log('The same with each chunk in a packet of its own, as engines send them');
const apart = inTurns([straight, ours, bareHttp], toBody(true, 'hermes3-8b', 'apart'));
show(apart);
console.log(`  ÷ bare node:http ${ratio(apart, bareHttp)}`);

const allCores = `0-${availableParallelism() - 1}`;
/** All threads of a process onto these cores, so that what is on others does not wait for it. */
const pin = (pid: number | undefined, cores: string) =>
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)]);

/**
 * Something that runs on a core whenever nothing else would. The host takes a core that falls asleep from a virtual
 * machine, and gives it back some milliseconds after it should have woken.
 */
function keepAwake(core: number): ChildProcess {
  const loop = ['sh', '-c', 'while :; do :; done'];
  const args = ['--idle', '0', 'taskset', '--cpu-list', String(core), ...loop];
  const child = spawn('chrt', args, { stdio: 'ignore' });
  children.push(child);
  return child;
}

console.log('First byte at a quarter of the peak rate, added to going straight');
console.log('  (the gateway on one core, client and upstream on the other, both kept awake)');
const quarter = Math.floor(median(streams.get(ours) ?? [400]) / 4);
const awake = [keepAwake(0), keepAwake(1)];
pin(gateway.pid, '0');
pin(bare.pid, '0');
pin(upstream.pid, '1');
pin(process.pid, '1');
// In many short turns: a pause of the machine's own, of which there are several a second on a small virtual one,
// is then the figure of its turn and not of all.
const turnSeconds = 0.5;
const turns = new Map<Target, number[][]>([straight, ours, bareHttp].map((each) => [each, []]));
for (const target of turns.keys()) await atRate(target, toBody(true), quarter, warmUpSeconds / 4);
for (let turn = 0; turn < (rounds * seconds) / turnSeconds; turn++)
  for (const [target, times] of turns)
    times.push(await atRate(target, toBody(true), quarter, turnSeconds));

const middling = (target: Target, part: number) =>
  median((turns.get(target) ?? []).map((times) => quantile(times, part)));
for (const [target, times] of turns) {
  const added = (part: number) =>
    (middling(target, part) - (target === straight ? 0 : middling(straight, part))).toFixed(2);
  const note = target === ours ? ' (goal 0.5 and 3)' : '';
  const all = quantile(times.flat(), 0.99).toFixed(1);
  console.log(
    `  ${target.name}: p50 ${added(0.5)} ms, p99 ${added(0.99)} ms${note}; p99 of all turns as one, nothing subtracted: ${all} ms`,
  );
}
for (const child of awake) child.kill();
for (const { pid } of [gateway, bare, upstream, process]) pin(pid, allCores);

console.log(
  '1,000 open slow streams, opened within 5 s, a chunk every 200 ms each, on a fresh server',
);
const server = startOurs(ports.fresh);
await listening(ports.fresh);
const through = await openSlowly({ ...ours, port: ports.fresh }, toBody(true, 'hermes3-70b'));
await new Promise((done) => setTimeout(done, 8_000));
console.log(`  resident ${residentMb(server).toFixed(0)} MB (goal 250)`);
const lags = (await Promise.all(through)).map((one) => one.worstLagMs);
const direct = await openSlowly({ ...straight, port: ports.slow }, toBody(true));
const base = (await Promise.all(direct)).map((one) => one.worstLagMs);
console.log(
  `  longest from the upstream's write to the client's read: ${quantile(lags, 1).toFixed(0)} ms; without us ${quantile(base, 1).toFixed(0)} ms (goal: 50 ms of ours)`,
);

console.log('Prompts of 4,000 messages and 1 MB');
const long = JSON.stringify({
  model: 'long',
  messages: Array.from({ length: 4000 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: 'The miller counts the sacks again. '.repeat(6).slice(0, 210),
  })),
  max_tokens: 16,
});
const stalls: number[] = [];
for (let turn = 0; turn < 11; turn++) {
  await readGauge('nodejs_eventloop_lag_max_seconds');
  await once({ ...ours, port: ports.fresh }, long);
  stalls.push((await readGauge('nodejs_eventloop_lag_max_seconds')) * 1000);
}
const first = stalls.shift() ?? 0;
console.log(
  `  ${(long.length / 1e6).toFixed(2)} MB; longest event-loop delay ${quantile(stalls, 0.5).toFixed(1)} ms (median of 10; worst ${quantile(stalls, 1).toFixed(1)}; the first, which loads the vocabulary, ${first.toFixed(1)}; goal 20, of which the timer's resolution is 10)`,
);
process.exit(0);
