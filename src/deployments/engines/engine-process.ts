// The process of an engine on this computer, with all its children. They end with the server, even if that is killed: a
// guard beside them holds a pipe of the server, and kills the whole process group when the pipe closes.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#lib/clock.ts';
import { illegalInstruction } from './engine.ts';
import { createLogTail } from './log-tail.ts';
import { findProgramFolder } from './recipes.ts';

export interface EngineCommand {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Its working directory. */
  readonly folder: string;
  /** Its home directory, where programs keep what they download. */
  readonly home: string;
}

export interface EngineProcess {
  /** It leads a session, which its children belong to. Undefined if it could not be started. */
  readonly pid: number | undefined;
  /** Resolves with a sentence on how the process ended. Never rejects. */
  readonly ended: Promise<string>;
  /** The last lines of its output, the newest last. */
  log(): readonly string[];
  /** Asks the process to end, and kills it with its children if it has not ended in time. */
  stop(): Promise<void>;
}

/**
 * `cat` ends when the server's end of the pipe closes. The guard ignores the signal that asks the engine to end. The
 * engine itself reads nothing.
 */
const guard = `exec 3<&0
(trap '' TERM; cat <&3 >/dev/null; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec "$@" </dev/null`;

/** Where programs without a path are sought. */
export const systemPath =
  '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin';
const stopTimeoutMs = 10_000;
/** Time for the last output of a process that has ended. */
const lastOutputMs = 200;

export function startEngineProcess(
  clock: Clock,
  { command, env, folder, home }: EngineCommand,
): EngineProcess {
  const own = findProgramFolder(command);
  const path = own === null ? systemPath : `${own}:${systemPath}`;
  const child = spawn('/bin/sh', ['-c', guard, 'engine', ...command], {
    cwd: folder,
    // The server's own environment has secrets. The engine gets none of it.
    env: { PATH: path, HOME: home, LANG: 'C.UTF-8', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A process group of its own, so that its children end with it.
    detached: true,
  });
  const tail = createLogTail();
  // There are no pipes if this process has no file descriptors left.
  for (const stream of [child.stdout, child.stderr] as (Readable | undefined)[]) {
    stream?.on('data', tail.write);
    // Without a listener, an error of a pipe would end the server.
    stream?.on('error', () => {});
  }
  (child.stdin as Writable | undefined)?.on('error', () => {});
  const ended = new Promise<string>((resolve) => {
    child.once('error', ({ message }) => resolve(`The engine could not be started: ${message}.`));
    child.once('exit', async (code, signal) => {
      // Children that outlive the engine would keep its GPU, and its output open.
      killGroup(child, 'SIGKILL');
      child.stdin.destroy();
      await pause(lastOutputMs);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve(toEnding(code, signal));
    });
  });
  return {
    pid: child.pid,
    ended,
    log: tail.lines,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return void (await ended);
      killGroup(child, 'SIGTERM');
      const over = new AbortController();
      const tooLong = clock.sleep(stopTimeoutMs, { signal: over.signal });
      tooLong.then(() => killGroup(child, 'SIGKILL')).catch(() => {});
      await ended;
      over.abort();
    },
  };
}

/** Does nothing if the group has ended, or belongs to another user by now. */
function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {}
}

function toEnding(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === 'SIGILL') return illegalInstruction;
  if (signal !== null) return `The engine was ended by ${signal}.`;
  const ended = `The engine ended with exit code ${code}`;
  // The shell that starts it ends with these.
  if (code === 127)
    return `${ended}: its program was not found. Install it on the server's computer, or name its absolute path.`;
  if (code === 126)
    return `${ended}: its program can't be executed. Check the path and its permissions.`;
  return `${ended}.`;
}
