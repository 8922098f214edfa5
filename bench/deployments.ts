// Deployments of the built-in engine: the first answer from no replica, on the host and on a machine, from a sleeping and
// from a stopped one; many callers while replicas come and go; what ten idle deployments cost. What is compared is measured
// in turns within each round, because the speed of a shared machine changes within a minute.
// Usage, as root: node bench/deployments.ts [rounds] [gone | asleep | stopped | callers | idle]

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { recipes } from '../src/deployments/engines/recipes.ts';
import { toSpec } from '../src/deployments/ground/spec.ts';
import { quantile } from './gateway/load.ts';
import { createServers, end, key, listening, readCpu } from './gateway/servers.ts';

const rounds = Number(process.argv[2] ?? 5);
const [, , , onlyPart] = process.argv;
const port = 18_210;
/** The port of the engine that is started by hand. */
const enginePort = 18_211;
const model = 'hermes3-8b';
const type = 'cpu_1x_general';
/** How long anything may take: a start, an answer, the end of a machine. */
const maxMs = 120_000;
/** An engine that ends may take a while, and would be waited for. */
const restMs = 3_000;
const callers = 50;

const recipe = recipes.builtin;
const { folder, start } = createServers();
const root = join(import.meta.dirname, '..');
const base = { model, engine: 'builtin', ladder: { gone: 1 } };

async function withServer(
  deployments: Record<string, object>,
  work: (server: ChildProcess) => Promise<void>,
): Promise<void> {
  const data = mkdtempSync(join(folder, 'data-'));
  const config = join(data, 'millrace.yaml');
  const cloud = { rate_limit: false };
  writeFileSync(config, JSON.stringify({ inference: { preload: false }, cloud, deployments }));
  const args = ['serve', '--port', String(port), '--data-dir', data, '--config', config];
  const server = start(join(root, 'millrace'), args, { MILLRACE_API_KEY: key });
  await listening(port);
  await work(server);
  await terminateAll();
  await end(server);
}

/** Machines go on without their server. */
const terminateAll = () =>
  until('no machine is left', async () => {
    const instance_ids = (await readInstances()).map(({ id }) => id);
    if (instance_ids.length === 0) return true;
    await call('/api/v1/instance-operations/terminate', { instance_ids });
    return false;
  });

const readInstances = () => read<{ id: string }[]>('/api/v1/instances');

async function read<Data>(path: string): Promise<Data> {
  const response = await call(path);
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return ((await response.json()) as { data: Data }).data;
}

const call = (path: string, body?: object, at = port) =>
  fetch(`http://127.0.0.1:${at}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(maxMs),
  });

/** Throws if it does not become true in time, so that no measurement waits for ever. */
async function until(what: string, isSo: () => Promise<boolean>, everyMs = 100): Promise<void> {
  const deadline = performance.now() + maxMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`After ${maxMs} ms, not yet: ${what}`);
    await pause(everyMs);
  }
}

const messages = [{ role: 'user', content: 'What is a millrace?' }];
const ask = (maxTokens = 1, at = port) =>
  call('/v1/chat/completions', { model, messages, max_tokens: maxTokens }, at);

async function timeFirst(): Promise<number> {
  const begunAt = performance.now();
  const response = await ask();
  if (!response.ok) throw new Error(await response.text());
  await response.arrayBuffer();
  return performance.now() - begunAt;
}

const hasStatus = async (wanted: string) =>
  (await read<{ status: string }>('/api/v1/deployments/bench')).status === wanted;

/** Waits before each round until the only replica rests. */
async function timeRested(): Promise<number> {
  await ask().then((response) => response.arrayBuffer());
  await until('the replica rests', () => hasStatus('asleep'));
  // The status says so before the engine has done it.
  await pause(restMs);
  return timeFirst();
}

/** Waits before each round until no replica and no machine is left. */
async function timeGone(): Promise<number> {
  await until(
    'there is no replica',
    async () => (await hasStatus('idle')) && (await readInstances()).length === 0,
  );
  await pause(restMs);
  return timeFirst();
}

/** The same engine, started by hand on one CPU, as a machine of the type has: until its first answer. */
async function timeLoad(): Promise<number> {
  const place = { port: enginePort, key, millrace: [join(root, 'millrace')] };
  const spec = toSpec({ name: 'bench', model, engine: 'builtin' });
  const command = ['-c', '0', ...recipe.toCommand(spec, place)];
  const begunAt = performance.now();
  const engine = start('taskset', command, recipe.toEnvironment(spec, place));
  const answers = async () => (await ask(1, enginePort).catch(() => null))?.ok ?? false;
  await until('the engine by hand answers', answers, 10);
  const ms = performance.now() - begunAt;
  await end(engine);
  return ms;
}

/** From the request to a machine that runs. It is terminated before the next measurement. */
async function timeLaunch(): Promise<number> {
  await call('/api/v1/ssh-keys', { name: 'bench' });
  const begunAt = performance.now();
  const wanted = { region_name: 'us-west-1', instance_type_name: type, ssh_key_names: ['bench'] };
  const launched = await call('/api/v1/instance-operations/launch', wanted);
  if (!launched.ok) throw new Error(await launched.text());
  const { data } = (await launched.json()) as { data: { instance_ids: string[] } };
  const path = `/api/v1/instances/${data.instance_ids[0]}`;
  const isActive = async () => (await read<{ status: string }>(path)).status === 'active';
  await until('the machine is active', isActive, 10);
  const ms = performance.now() - begunAt;
  await terminateAll();
  return ms;
}

const show = (name: string, values: readonly number[]) => {
  const range = `${Math.min(...values).toFixed(0)}-${Math.max(...values).toFixed(0)}`;
  console.log(
    `  ${name}: ${quantile(values, 0.5).toFixed(0)} ms (${range}, ${values.length} rounds)`,
  );
};

async function repeat(measure: () => Promise<number>): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) times.push(await measure());
  return times;
}

/** Compares the first measurement with the sum of the others, which are its parts. */
async function compare(
  goal: number,
  [whole, ...parts]: [Measurement, ...Measurement[]],
): Promise<void> {
  const rows: { whole: number; parts: number[] }[] = [];
  for (let round = 0; round < rounds; round++) {
    const row = { whole: await whole.measure(), parts: [] as number[] };
    for (const { measure } of parts) row.parts.push(await measure());
    rows.push(row);
  }
  show(
    whole.name,
    rows.map((row) => row.whole),
  );
  for (const [at, { name }] of parts.entries())
    show(
      name,
      rows.map((row) => row.parts[at] ?? Number.NaN),
    );
  const ratios = rows.map((row) => row.whole / row.parts.reduce((sum, ms) => sum + ms, 0));
  const texts = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
  console.log(`  ratios: ${texts}; median ${quantile(ratios, 0.5).toFixed(2)} (goal ${goal})`);
}

interface Measurement {
  readonly name: string;
  readonly measure: () => Promise<number>;
}

const byHand = { name: 'the load by hand, on one CPU', measure: timeLoad };

const onMachine = { ...base, runs_on: type };
const asleep = { asleep: 1, gone: 600 };

const parts: Record<string, () => Promise<void>> = {
  async gone() {
    console.log('First answer from no replica');
    await withServer({ bench: base }, async () => show('on the host', await repeat(timeGone)));
    await withServer({ bench: onMachine }, () =>
      compare(1.1, [
        { name: 'on a machine (goal 3,000)', measure: timeGone },
        { name: 'a launch alone', measure: timeLaunch },
        byHand,
      ]),
    );
  },

  async asleep() {
    console.log('First answer from a replica that is asleep');
    await withServer({ bench: { ...base, ladder: asleep } }, async () =>
      show('on the host (goal 500)', await repeat(timeRested)),
    );
    await withServer({ bench: { ...onMachine, ladder: asleep } }, async () =>
      show('on a machine (goal 500)', await repeat(timeRested)),
    );
  },

  async stopped() {
    console.log('First answer from a replica whose engine is stopped');
    await withServer({ bench: { ...onMachine, ladder: { stopped: 1, gone: 600 } } }, () =>
      compare(1.05, [{ name: 'stopped, on a machine', measure: timeRested }, byHand]),
    );
  },

  async callers() {
    console.log(
      `${callers} callers at once, then none, with at most 3 replicas for 8 requests each`,
    );
    await withServer({ bench: { ...base, max: 3, hold_requests: callers } }, async () => {
      const statuses = new Map<number, number>();
      for (let round = 0; round < rounds; round++) {
        const one = async () => {
          const response = await ask(32);
          await response.arrayBuffer();
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        };
        await Promise.all(Array.from({ length: callers }, one));
        await until('there is no replica', () => hasStatus('idle'));
      }
      for (const [status, count] of statuses) console.log(`  status ${status}: ${count}`);
    });
  },

  async idle() {
    console.log('CPU of an idle server');
    for (const count of [0, 10]) {
      const idle = Array.from({ length: count }, (_, index) => [`idle-${index}`, base]);
      await withServer(Object.fromEntries(idle), async (server) => {
        // Schemas are compiled, and the heap settles, in the first minute.
        await pause(60_000);
        const before = readCpu(server);
        await pause(30_000);
        const share = (readCpu(server).allMs - before.allMs) / 30_000;
        console.log(`  ${count} idle deployments: ${(share * 100).toFixed(2)} % of a core`);
      });
    }
  },
};

for (const [name, measure] of Object.entries(parts))
  if (onlyPart === undefined || onlyPart === name) await measure();
process.exit(0);
