// Millrace as a gateway, with keys, limits and metering on, beside bare pass-throughs and another gateway:
// requests and streams per second, what it adds to the first byte, many slow streams, very long prompts.

import { type ChildProcess, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { atRate, once, openSlowly, peakRate, quantile, type Target } from './gateway/load.ts';
import { createServers, end, key, listening, residentMb } from './gateway/servers.ts';

/** Many and short: two of them, one after the other, may differ by half. */
const rounds = Number(process.argv[2] ?? 24);
const seconds = Number(process.argv[3] ?? 1);
/** For each target before it is measured: the larger a program, the longer until all of it is compiled. */
const warmUpSeconds = 12;
const root = join(import.meta.dirname, '..');
const { folder, start, script, millrace } = createServers();
const ports = {
  upstream: 18_090,
  slow: 18_091,
  ours: 18_092,
  fastify: 18_093,
  http: 18_094,
  portkey: 18_095,
  fresh: 18_096,
};

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

const startOurs = (port: number) =>
  millrace(root, port, { quick: ports.upstream, slow: ports.slow });

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
 * opposite order: a target may be slower after one that kept the machine busy.
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

/** Reads a gauge of the server that was just started. */
async function readGauge(name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${ports.fresh}/metrics`)).text();
  return Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1]);
}

const upstream = script('gateway/upstream.ts', ports.upstream, 50, 0);
script('gateway/upstream.ts', ports.slow, 100, 200);
script('gateway/bare-fastify.ts', ports.fastify, ports.upstream);
const bare = script('gateway/bare-http.ts', ports.http, ports.upstream);
script(
  'node_modules/@portkey-ai/gateway/build/start-server.js',
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
  return start('chrt', args);
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
const slowModel = 'hermes3-70b';
const input = 'How many rivers meet at the old mill, and what are they called?';
const translated = [
  ['/v1/responses', JSON.stringify({ model: slowModel, input, stream: true })],
  ['/v1/messages', toBody(true, slowModel).replace('"system"', '"user"')],
] as const;
for (const [path, body] of translated) {
  const server = startOurs(ports.fresh);
  await listening(ports.fresh);
  const open = await openSlowly({ ...ours, port: ports.fresh }, body, path);
  await new Promise((done) => setTimeout(done, 8_000));
  console.log(`  ${path}: resident ${residentMb(server).toFixed(0)} MB (goal 220)`);
  await Promise.all(open);
  await end(server);
}
const server = startOurs(ports.fresh);
await listening(ports.fresh);
const through = await openSlowly({ ...ours, port: ports.fresh }, toBody(true, slowModel));
await new Promise((done) => setTimeout(done, 8_000));
console.log(`  chat: resident ${residentMb(server).toFixed(0)} MB (goal 250)`);
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
