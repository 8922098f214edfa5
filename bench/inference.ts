// What HTTP, authentication and metering cost on top of the engine: tokens per second through the API
// against the same loop in this process, in turns; time to first token of a repeated prompt; the API
// process's own event-loop delay under 8 streams. Usage: node bench/inference.ts [repetitions]

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env, execPath, exit } from 'node:process';
import type { Task } from '../src/inference/engine.ts';
import { builtinModel } from '../src/inference/engines/local/builtin.ts';
import { openDirect } from './direct.ts';
import { shape125m, writeModel } from './make-gguf.ts';

const repetitions = Number(argv[2] ?? 5);
const port = 18_083;
const key = 'bench-key-that-is-long-enough-123456';
const url = `http://127.0.0.1:${port}`;

// The setting is read once, when the process starts.
if (env.UV_THREADPOOL_SIZE !== '1') {
  const { status } = spawnSync(execPath, argv.slice(1), {
    env: { ...env, UV_THREADPOOL_SIZE: '1' },
    stdio: 'inherit',
  });
  exit(status ?? 1);
}

let random = 7;
function newBody(promptTokens: number, maxTokens: number) {
  const prompt = Array.from({ length: promptTokens }, () => {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    return 300 + (random % 7000);
  });
  const sampling = { temperature: 0.8, top_k: 40, top_p: 0.95, ignore_eos: true };
  return { model: 'hermes3-8b', prompt, max_tokens: maxTokens, ...sampling };
}
type Body = ReturnType<typeof newBody>;
type Run = (body: Body) => Promise<{ tokens: number; firstMs: number }>;

async function throughHttp(body: Body): Promise<{ tokens: number; firstMs: number }> {
  const start = performance.now();
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
  });
  if (response.body === null || !response.ok) throw new Error(`answered ${response.status}`);
  let firstMs = 0;
  let tail = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    firstMs ||= performance.now() - start;
    tail = (tail + decoder.decode(bytes, { stream: true })).slice(-2000);
  }
  const tokens = Number(/"completion_tokens":(\d+)/.exec(tail)?.[1] ?? 0);
  return { tokens, firstMs };
}

async function tokensPerSecond(run: Run, streams: number): Promise<number> {
  const start = performance.now();
  const runs = await Promise.all(Array.from({ length: streams }, () => run(newBody(32, 128))));
  const tokens = runs.reduce((sum, one) => sum + one.tokens, 0);
  return (tokens / (performance.now() - start)) * 1000;
}

async function maxDelayMs(): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/nodejs_eventloop_lag_max_seconds ([\d.e-]+)/.exec(metrics)?.[1]) * 1000;
}

async function startServer(folder: string, modelPath: string | null): Promise<ChildProcess> {
  const file = join(folder, 'bench.yaml');
  writeFileSync(
    file,
    JSON.stringify({ inference: { stand_in: modelPath, threads: 1, gpu: false } }),
  );
  const args = [
    'serve',
    '--config',
    file,
    '--port',
    String(port),
    '--data-dir',
    join(folder, 'data'),
  ];
  const child = spawn(join(import.meta.dirname, '../millrace'), args, {
    env: { ...env, MILLRACE_API_KEY: key, UV_THREADPOOL_SIZE: '4' },
    stdio: 'ignore',
  });
  for (let tries = 0; tries < 400; tries++) {
    if (await fetch(`${url}/healthz`).catch(() => null)) return child;
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error('the server did not start');
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function measure(folder: string, modelPath: string | null): Promise<Record<string, string>> {
  const server = await startServer(folder, modelPath);
  const result: Record<string, string> = {};
  const cold = await throughHttp(newBody(32, 2));
  result['cold start to first token'] = `${cold.firstMs.toFixed(0)} ms`;
  const direct = await openDirect({ modelPath: modelPath ?? builtinModel.modelPath, threads: 1 });
  const inProcess: Run = async (body) => {
    const task: Task = { kind: 'completion', body };
    const { completion_tokens: tokens } = await direct.run(task, () => {});
    return { tokens, firstMs: 0 };
  };
  await inProcess(newBody(32, 8));
  for (const streams of [1, 8]) {
    // The histogram begins anew with each look at it.
    await maxDelayMs();
    const [http, loop]: [number[], number[]] = [[], []];
    for (let round = 0; round < repetitions; round++) {
      http.push(await tokensPerSecond(throughHttp, streams));
      loop.push(await tokensPerSecond(inProcess, streams));
    }
    result[`event loop, longest delay with ${streams} streams`] =
      `${(await maxDelayMs()).toFixed(1)} ms`;
    const [own, other] = [median(http), median(loop)];
    result[`tokens/s, ${streams} streams: HTTP ÷ direct`] =
      `${own.toFixed(0)} ÷ ${other.toFixed(0)} = ${(own / other).toFixed(2)}`;
  }
  const [fresh, again]: [number[], number[]] = [[], []];
  for (let round = 0; round < repetitions; round++) {
    const body = newBody(1000, 2);
    fresh.push((await throughHttp(body)).firstMs);
    again.push((await throughHttp(body)).firstMs);
  }
  result['first token of 1,000, again ÷ fresh'] =
    `${median(again).toFixed(0)} ÷ ${median(fresh).toFixed(0)} ms = ${(median(again) / median(fresh)).toFixed(2)}`;
  const gone = new Promise((done) => server.once('exit', done));
  server.kill('SIGTERM');
  await gone;
  return result;
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
try {
  const random125m = join(folder, '125m.gguf');
  writeModel(random125m, shape125m);
  console.table({
    'built-in, 23M': await measure(folder, null),
    'random, 125M': await measure(folder, random125m),
  });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
exit(0);
