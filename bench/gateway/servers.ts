// Starts the servers that the benchmarks of the gateway compare, and ends them with the process.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const key = 'bench-key-that-is-long-enough-123456';

export interface Servers {
  /** Deleted at the end. */
  readonly folder: string;
  /** Starts a program. */
  start(file: string, args: readonly string[], env?: NodeJS.ProcessEnv): ChildProcess;
  /** Starts a script of `bench` with Node. */
  script(file: string, ...args: (string | number)[]): ChildProcess;
  /** Starts Millrace from a checkout, with keys and all four limits. Its models are served by the given ports. */
  millrace(root: string, port: number, upstreams: Upstreams): ChildProcess;
}

export interface Upstreams {
  readonly quick: number;
  readonly slow: number;
}

export function createServers(): Servers {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const children: ChildProcess[] = [];
  process.once('exit', () => {
    for (const child of children) child.kill('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

  const start: Servers['start'] = (file, args, env) => {
    const child = spawn(file, args, { stdio: 'ignore', env: { ...process.env, ...env } });
    children.push(child);
    return child;
  };

  return {
    folder,
    start,
    script: (file, ...args) =>
      start(process.execPath, [join(import.meta.dirname, '..', file), ...args.map(String)]),
    millrace(root, port, upstreams) {
      const data = mkdtempSync(join(folder, 'data-'));
      const config = join(data, 'millrace.yaml');
      writeFileSync(config, toConfig(upstreams));
      const args = ['serve', '--port', String(port), '--data-dir', data, '--config', config];
      return start(join(root, 'millrace'), args, { MILLRACE_API_KEY: key });
    },
  };
}

function toConfig({ quick, slow }: Upstreams): string {
  const backend = (port: number) =>
    `{ name: upstream, url: "http://127.0.0.1:${port}/v1", model: org/model, server: vllm }`;
  return [
    'limits:',
    '  account: { requests_per_minute: 100000000, tokens_per_minute: 1000000000, concurrent_requests: 100000, monthly_budget: 1000000 }',
    'models:',
    '  catalog:',
    `    hermes3-8b: { backends: [${backend(quick)}] }`,
    `    hermes3-70b: { backends: [${backend(slow)}] }`,
    // Half a million tokens: a prompt of 1 MB fits, but only a count can tell.
    `    long: { context_window: 524288, vocabulary: llama3, backends: [${backend(quick)}] }`,
  ].join('\n');
}

export async function listening(port: number): Promise<void> {
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

export const residentMb = ({ pid }: ChildProcess) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

export interface Cpu {
  readonly allMs: number;
  /** The thread that serves requests. */
  readonly mainMs: number;
}

/** CPU time as the scheduler counts it, in nanoseconds. Time that the thread waited for a core is not in it. */
export function readCpu({ pid }: ChildProcess): Cpu {
  const of = (thread: string | number | undefined) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const allMs = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + of(thread), 0);
  return { allMs, mainMs: of(pid) };
}

export async function end(server: ChildProcess): Promise<void> {
  // It would never report its exit again.
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = once(server, 'exit');
  server.kill('SIGTERM');
  await gone;
}
