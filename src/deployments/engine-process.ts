// The process of an engine on this computer. It ends with the server, even if that is killed: a guard beside it holds
// a pipe of the server, and kills the whole process group when the pipe closes.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

export interface EngineCommand {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Its working directory. */
  readonly folder: string;
}

export interface EngineProcess {
  /** Resolves with a sentence on how the process ended. Never rejects. */
  readonly ended: Promise<string>;
  /** The last lines of its output, the newest last. */
  log(): readonly string[];
  /** Asks the process to end, and kills it if it has not ended in time. */
  stop(): Promise<void>;
}

/** `cat` ends when the server's end of the pipe closes. The engine itself reads nothing. */
const guard = `exec 3<&0
(cat <&3 >/dev/null; kill -KILL 0) &
exec 3<&-
exec "$@" </dev/null`;

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const maxLogLines = 200;
const maxLineLength = 2_000;
const stopTimeoutMs = 10_000;

export function startEngineProcess({ command, env, folder }: EngineCommand): EngineProcess {
  const child = spawn('/bin/sh', ['-c', guard, 'engine', ...command], {
    cwd: folder,
    // The server's own environment has secrets. The engine gets none of it.
    env: { PATH: path, HOME: folder, LANG: 'C.UTF-8', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A process group of its own, so that its children end with it.
    detached: true,
  });
  const lines: string[] = [];
  keepLines(child.stdout, lines);
  keepLines(child.stderr, lines);
  // Without a listener, an error of the pipe would end the server.
  child.stdin.on('error', () => {});
  const ended = new Promise<string>((resolve) => {
    child.once('error', ({ message }) => resolve(`The engine could not be started: ${message}.`));
    child.once('close', (code, signal) => resolve(toEnding(code, signal)));
    child.once('exit', () => child.stdin.end());
  });
  return {
    ended,
    log: () => lines,
    async stop() {
      signalGroup(child, 'SIGTERM');
      const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), stopTimeoutMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

function keepLines(output: Readable, lines: string[]): void {
  createInterface({ input: output, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
    lines.push(line.slice(0, maxLineLength));
    if (lines.length > maxLogLines) lines.shift();
  });
}

function signalGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // It has ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const toEnding = (code: number | null, signal: NodeJS.Signals | null): string =>
  signal === null
    ? `The engine ended with exit code ${code}.`
    : `The engine was ended by ${signal}.`;
