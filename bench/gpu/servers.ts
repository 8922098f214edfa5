// The servers of gpu.ts, each a child process on a port of loopback: Millrace, and llama-server.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';

const startSeconds = 120;

export interface Server {
  readonly url: string;
  readonly key: string;
  /** The id of the model in requests. */
  readonly model: string;
  readLog(): string;
  stop(): Promise<void>;
}

export interface MillraceOptions {
  readonly model?: string;
  /** A data directory in which `millrace gpu build` ran. Its kernels are used. */
  readonly kernelsFrom?: string | undefined;
}

export async function startMillrace(
  port: number,
  config: object,
  { model = '', kernelsFrom }: MillraceOptions = {},
): Promise<Server> {
  // Not below /mnt, where machines are assembled.
  const folder = mkdtempSync('/tmp/millrace-bench-gpu-');
  const file = join(folder, 'millrace.yaml');
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  if (kernelsFrom) symlinkSync(resolve(kernelsFrom, 'gpu'), join(dataDir, 'gpu'));
  writeFileSync(file, JSON.stringify({ data_dir: dataDir, ...config }));
  const log = join(folder, 'log');
  const key = 'bench-key-that-is-long-enough-123456';
  const program = join(import.meta.dirname, '../../millrace');
  const child = await start(program, ['serve', '--config', file, '--port', String(port)], {
    health: `http://127.0.0.1:${port}/readyz`,
    log,
    env: { MILLRACE_API_KEY: key },
  });
  const stop = async () => {
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  const readLog = () => readFileSync(log, 'utf8');
  return { url: `http://127.0.0.1:${port}`, key, model, readLog, stop };
}

/** No prompt cache in host memory, which makes each round slower than the one before, and a KV cache per slot. */
export async function startLlamaServer(
  program: string,
  port: number,
  weights: string,
  slots: number,
): Promise<Server> {
  const cache = ['-np', String(slots), '-c', String(slots * 1024), '-no-kvu', '--cache-ram', '0'];
  const address = ['--host', '127.0.0.1', '--port', String(port)];
  const args = ['-m', weights, ...address, '-ngl', '99', '-t', '2', ...cache];
  const url = `http://127.0.0.1:${port}`;
  const child = await start(program, args, { health: `${url}/health`, log: '/dev/null', env: {} });
  return { url, key: 'none', model: 'm', readLog: () => '', stop: () => end(child) };
}

interface StartOptions {
  readonly health: string;
  readonly log: string;
  readonly env: Record<string, string>;
}

async function start(program: string, args: string[], { health, log, env }: StartOptions) {
  // A server left over from before would answer in place of the new one.
  if (await fetch(health).catch(() => null)) throw new Error(`${health} is served already`);
  const output = openSync(log, 'a');
  const stdio = ['ignore', output, output] as const;
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: [...stdio] });
  for (let tries = 0; tries < startSeconds * 10; tries++) {
    const answer = await fetch(health).catch(() => null);
    if (answer?.ok) return child;
    if (child.exitCode !== null) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  child.kill();
  throw new Error(`${program} did not start`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill();
  await once(child, 'exit');
}
