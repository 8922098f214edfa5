// What the child process and its messages cost: the engine against the same loop in this process, run by
// run in turns, as ratios. Usage: node bench/engine.ts [repetitions]

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env, execPath, exit } from 'node:process';
import type { Task } from '../src/inference/engine.ts';
import { builtinModel } from '../src/inference/engines/local/builtin.ts';
import {
  createLocalEngine,
  type LocalEngine,
} from '../src/inference/engines/local/parent/local.ts';
import type { Usage } from '../src/inference/wire/response.ts';
import { newCall } from '../test/support/engine-call.ts';
import { openDirect } from './direct.ts';
import { shape125m, writeModel } from './make-gguf.ts';

const repetitions = Number(argv[2] ?? 5);
const generated = 128;

// The setting is read once, when the process starts.
if (env.UV_THREADPOOL_SIZE !== '1') {
  const { status } = spawnSync(execPath, argv.slice(1), {
    env: { ...env, UV_THREADPOOL_SIZE: '1' },
    stdio: 'inherit',
  });
  exit(status ?? 1);
}

type Run = (task: Task) => Promise<{ usage: Usage; firstMs: number }>;

let random = 99;
function prompt(tokens: number): number[] {
  return Array.from({ length: tokens }, () => {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    return 300 + (random % 7000);
  });
}

function generation(tokens: number, maxTokens: number): Task {
  const body = { model: 'm', prompt: prompt(tokens), max_tokens: maxTokens, ignore_eos: true };
  return { kind: 'completion', body: { ...body, temperature: 0.8, top_k: 40, top_p: 0.95 } };
}

function throughEngine(engine: LocalEngine): Run {
  return async (task) => {
    const start = performance.now();
    let firstMs = 0;
    let usage: Usage | null = null;
    const call = newCall({ contextWindow: 2048 });
    for await (const chunk of await engine.stream(task, call)) {
      firstMs ||= performance.now() - start;
      usage = chunk.usage ?? usage;
    }
    if (usage === null) throw new Error('No usage came');
    return { usage, firstMs };
  };
}

async function tokensPerSecond(run: Run, streams: number): Promise<number> {
  const tasks = Array.from({ length: streams }, () => generation(32, generated));
  const start = performance.now();
  const results = await Promise.all(tasks.map(run));
  const tokens = results.reduce((sum, { usage }) => sum + usage.completion_tokens, 0);
  return (tokens / (performance.now() - start)) * 1000;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}

async function measure(name: string, modelPath: string): Promise<Record<string, string>> {
  let memoryBytes = 0;
  const engine = createLocalEngine({
    name,
    modelPath,
    threads: 1,
    contextSize: 2048,
    grammars: { compile: async () => ({ grammar: '' }) },
    onEvent(event) {
      if (event.kind === 'ready') memoryBytes = event.memoryBytes;
    },
  });
  const child = throughEngine(engine);
  const cold = await child(generation(32, 2));
  const direct = await openDirect({ modelPath, threads: 1 });
  const inProcess: Run = async (task) => {
    const start = performance.now();
    let firstMs = 0;
    const usage = await direct.run(task, () => {
      firstMs ||= performance.now() - start;
    });
    return { usage, firstMs };
  };
  await inProcess(generation(32, 8));

  const result: Record<string, string> = { 'cold start to first token': toMs(cold.firstMs) };
  for (const streams of [1, 8]) {
    const speeds = { child: [] as number[], direct: [] as number[] };
    for (let round = 0; round < repetitions; round++) {
      speeds.child.push(await tokensPerSecond(child, streams));
      speeds.direct.push(await tokensPerSecond(inProcess, streams));
    }
    const [own, other] = [median(speeds.child), median(speeds.direct)];
    result[`tokens/s, ${streams} stream${streams > 1 ? 's' : ''}: engine ÷ direct`] =
      `${own.toFixed(0)} ÷ ${other.toFixed(0)} = ${(own / other).toFixed(2)}`;
  }
  const firsts = { fresh: [] as number[], again: [] as number[] };
  for (let round = 0; round < repetitions; round++) {
    const task = generation(1000, 2);
    firsts.fresh.push((await child(task)).firstMs);
    firsts.again.push((await child(task)).firstMs);
  }
  const [again, fresh] = [median(firsts.again), median(firsts.fresh)];
  result['first token of 1,000, again ÷ fresh'] =
    `${toMs(again)} ÷ ${toMs(fresh)} = ${(again / fresh).toFixed(2)}`;
  const resident = residentBytes(engine.status().pid ?? 0);
  result['child beyond weights and cache'] =
    `${toMb(resident)} - ${toMb(memoryBytes)} = ${toMb(resident - memoryBytes)} MB`;
  await engine.close();
  return result;
}

function toMs(ms: number): string {
  return `${ms.toFixed(0)} ms`;
}

function toMb(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
try {
  const random125m = join(folder, '125m.gguf');
  writeModel(random125m, shape125m);
  console.table({
    'built-in, 23M': await measure('built-in', builtinModel.modelPath),
    'random, 125M': await measure('125m', random125m),
  });
} finally {
  rmSync(folder, { recursive: true });
}
exit(0);
