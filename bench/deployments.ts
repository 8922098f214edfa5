// Deployments of the built-in engine: the first answer from no replica, on the host and on a machine, from a sleeping and
// from a stopped one; many callers while replicas come and go; what ten idle deployments cost.
// Usage, as root: node bench/deployments.ts [rounds] [gone | asleep | stopped | callers | idle]

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { recipes } from '../src/deployments/engines/recipes.ts';
import { toSpec } from '../src/deployments/spec.ts';
import { quantile } from './gateway/load.ts';
import { createServers, end, key, listening, readCpu } from './gateway/servers.ts';

const rounds = Number(process.argv[2] ?? 5);
const [, , , onlyPart] = process.argv;
const port = 18_210;
/** The port of the engine that is started by hand. */
const enginePort = 18_211;
const model = 'hermes3-8b';
const type = 'cpu_1x_general';
/** A replica stays for as long as its start took. Then come a second of idle time, a drain and the end of a machine. */
const goneMs = 15_000;
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
async function terminateAll(): Promise<void> {
  for (;;) {
    const response = await call('/api/v1/instances');
    const { data } = (await response.json()) as { data: { id: string }[] };
    if (data.length === 0) return;
    const instance_ids = data.map(({ id }) => id);
    await call('/api/v1/instance-operations/terminate', { instance_ids });
    await pause(500);
  }
}

const call = (path: string, body?: object, at = port) =>
  fetch(`http://127.0.0.1:${at}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });

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

/** Waits before each round until the only replica rests. */
async function timeRested(): Promise<number> {
  await ask().then((response) => response.arrayBuffer());
  for (;;) {
    const response = await call('/api/v1/deployments/bench');
    const { data } = (await response.json()) as { data: { status: string } };
    if (data.status === 'asleep') break;
    await pause(100);
  }
  // The status says so before the engine has done it.
  await pause(restMs);
  return timeFirst();
}

/** The same engine, started by hand on one CPU, as a machine of the type has: until its first answer. */
async function timeLoad(): Promise<number> {
  const data = mkdtempSync(join(folder, 'engine-'));
  const place = { port: enginePort, key, folder: data, millrace: [join(root, 'millrace')] };
  const spec = toSpec({ name: 'bench', model, engine: 'builtin' });
  for (const [name, text] of Object.entries(recipe.toFiles?.(spec, place) ?? {}))
    writeFileSync(join(data, name), text);
  const command = ['-c', '0', ...recipe.toCommand(spec, place)];
  const begunAt = performance.now();
  const engine = start('taskset', command, recipe.toEnvironment(spec, place));
  while (!(await ask(1, enginePort).catch(() => null))?.ok) await pause(10);
  const ms = performance.now() - begunAt;
  await end(engine);
  return ms;
}

/** From the request to a machine that runs. */
async function timeLaunch(): Promise<number> {
  await call('/api/v1/ssh-keys', { name: 'bench' });
  const begunAt = performance.now();
  const wanted = { region_name: 'us-west-1', instance_type_name: type, ssh_key_names: ['bench'] };
  const launched = await call('/api/v1/instance-operations/launch', wanted);
  const { data } = (await launched.json()) as { data: { instance_ids: string[] } };
  for (;;) {
    const response = await call(`/api/v1/instances/${data.instance_ids[0]}`);
    const { data: instance } = (await response.json()) as { data: { status: string } };
    if (instance.status === 'active') break;
    await pause(10);
  }
  const ms = performance.now() - begunAt;
  await call('/api/v1/instance-operations/terminate', { instance_ids: data.instance_ids });
  return ms;
}

const show = (name: string, values: readonly number[]) => {
  const range = `${Math.min(...values).toFixed(0)}-${Math.max(...values).toFixed(0)}`;
  console.log(
    `  ${name}: ${quantile(values, 0.5).toFixed(0)} ms (${range}, ${values.length} rounds)`,
  );
};

async function repeat(measure: () => Promise<number>, pauseMs = goneMs): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    times.push(await measure());
    await pause(pauseMs);
  }
  return times;
}

/** One after the other in each round, because the speed of a shared machine changes within a minute. */
async function compareStopped(): Promise<void> {
  const times: { stopped: number[]; byHand: number[] } = { stopped: [], byHand: [] };
  for (let round = 0; round < rounds; round++) {
    times.stopped.push(await timeRested());
    times.byHand.push(await timeLoad());
  }
  const ratios = times.stopped.map((ms, round) => ms / (times.byHand[round] ?? Number.NaN));
  show('stopped, on a machine', times.stopped);
  show('the load by hand, on one CPU', times.byHand);
  console.log(`  median of the ratios: ${quantile(ratios, 0.5).toFixed(2)} (goal 1.05)`);
}

const onMachine = { ...base, runs_on: type };
const asleep = { asleep: 1, gone: 600 };

const parts: Record<string, () => Promise<void>> = {
  async gone() {
    console.log('First answer from no replica');
    await withServer({ bench: base }, async () => show('on the host', await repeat(timeFirst)));
    await withServer({ bench: onMachine }, async () => {
      show('on a machine (goal 3,000)', await repeat(timeFirst));
      show('a launch alone', await repeat(timeLaunch));
    });
  },

  async asleep() {
    console.log('First answer from a replica that is asleep');
    await withServer({ bench: { ...base, ladder: asleep } }, async () =>
      show('on the host (goal 500)', await repeat(timeRested, 0)),
    );
    await withServer({ bench: { ...onMachine, ladder: asleep } }, async () =>
      show('on a machine (goal 500)', await repeat(timeRested, 0)),
    );
  },

  async stopped() {
    console.log('First answer from a replica whose engine is stopped');
    await withServer(
      { bench: { ...onMachine, ladder: { stopped: 1, gone: 600 } } },
      compareStopped,
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
        await pause(goneMs);
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
