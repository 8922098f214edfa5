// The real program as a child process, the way a user starts it, and commands of its CLI in a thread of this process.

import assert from 'node:assert';
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { Worker } from 'node:worker_threads';

const root = join(import.meta.dirname, '../..');

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunningProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly dataDir: string;
  stdout(): string;
  stderr(): string;
  ended: Promise<Finished>;
}

const folders: string[] = [];
const children: ChildProcess[] = [];

const threads: Worker[] = [];
const idleThreads: Worker[] = [];

after(async () => {
  for (const thread of threads) await thread.terminate();
  for (const child of children) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-process-'));
  folders.push(folder);
  return folder;
}

/** A secret of the first start. The server's output is no terminal, so it names a file. */
export function readFirstSecret(stdout: string, name: 'First API key' | 'Set-up link'): string {
  const file = new RegExp(`${name}\\s+in the file (.+)`).exec(stdout)?.[1];
  assert(file !== undefined, `the server printed no ${name}: ${stdout}`);
  return readFileSync(file, 'utf8').trim();
}

/** Runs a command of the CLI to its end. */
export function runMillrace(
  args: string[],
  options: { env?: Record<string, string>; input?: string; cwd?: string } = {},
): Promise<Finished> {
  const { child, ended } = start(args, options.env ?? {}, { cwd: options.cwd });
  child.stdin?.end(options.input ?? '');
  return ended;
}

export interface CliCall {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly input: string;
}

/**
 * Runs a command of the CLI to its end in a thread, which takes a hundredth of the CPU time of `runMillrace`. That one is for
 * commands whose point is the exit, a signal or the program that they start, and for those that read the current folder, such
 * as its millrace.yaml, or standard input as the file `-`.
 */
export async function callMillrace(
  args: string[],
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {},
): Promise<Finished> {
  assert(!args.includes('-'), 'standard input is no file in a thread: use runMillrace');
  const thread = idleThreads.pop() ?? startThread();
  const call: CliCall = { args, env: { ...toEnvironment(), ...env }, input };
  const ended = await new Promise<Finished>((resolve, reject) => {
    thread.once('error', reject).once('message', resolve).postMessage(call);
  });
  thread.removeAllListeners('error');
  idleThreads.push(thread);
  return ended;
}

function startThread(): Worker {
  const { NODE_COMPILE_CACHE = '', NODE_COMPILE_CACHE_PORTABLE = '' } = process.env;
  const env = { NODE_COMPILE_CACHE, NODE_COMPILE_CACHE_PORTABLE };
  const thread = new Worker(join(import.meta.dirname, 'cli-thread.ts'), { env, execArgv: [] });
  threads.push(thread);
  thread.unref();
  return thread;
}

const toEnvironment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: makeFolder(),
  MILLRACE_PROGRAM: './millrace',
});

/** Starts `millrace serve` on a free port and waits for the start-up table. `log` is a file instead of a pipe.
 * `uid` is the user to run as, which needs root. */
export async function serveMillrace(
  args: string[] = [],
  env: Record<string, string> = {},
  log: number | 'pipe' = 'pipe',
  uid?: number,
): Promise<RunningProcess> {
  const dataDir = makeFolder();
  const all = ['serve', '--port', '0', '--data-dir', dataDir, ...args];
  if (uid !== undefined) chownSync(dataDir, uid, uid);
  const { child, ended, stdout, stderr } = start(all, env, { log, uid });
  const table = new Promise<string>((resolve) => {
    child.stdout?.on('data', () => {
      const url = /Inference API\s+(\S+)\/v1/.exec(stdout())?.[1];
      if (url !== undefined && stdout().includes('API docs')) resolve(url);
    });
  });
  const url = await Promise.race([table, ended]);
  if (typeof url !== 'string') throw new Error(`the server ended: ${url.stderr}${url.stdout}`);
  return { child, url, dataDir, stdout, stderr, ended };
}

interface StartOptions {
  readonly cwd?: string | undefined;
  readonly log?: number | 'pipe';
  readonly uid?: number | undefined;
}

function start(
  args: string[],
  env: Record<string, string>,
  { cwd, log = 'pipe', uid }: StartOptions,
) {
  const child = spawn(join(root, 'millrace'), args, {
    cwd: cwd ?? (uid === undefined ? makeFolder() : '/'),
    env: { ...toEnvironment(), ...env },
    stdio: ['pipe', 'pipe', log],
    ...(uid !== undefined && { uid, gid: uid }),
  });
  children.push(child);
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<Finished>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, stdout: () => stdout, stderr: () => stderr };
}
