// A terminal inside a machine, for `ssh -t` and for the browser. `script` opens the machine's own
// pseudo-terminal, so that programs inside know it by name; ours outside only carries size and bytes.

import type { Socket } from 'node:net';
import { spawn } from '@lydell/node-pty';
import type { Terminal, TerminalSize } from '#cloud/drivers/driver.ts';
import { enterCommand, outerEnvironment, type RunningMachine } from './enter.ts';
import { findChild, findProcess, signalProcess } from './process-identity.ts';

export interface TerminalOptions extends TerminalSize {
  /** Null for the login shell. */
  readonly command: string | null;
  readonly type: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export function openSandboxTerminal(machine: RunningMachine, options: TerminalOptions): Terminal {
  const { host } = machine;
  const shell = quote(host.shell);
  const run =
    options.command === null ? `exec ${shell} -l` : `exec ${shell} -c ${quote(options.command)}`;
  const argv = host.script
    ? [host.script, '-qefc', `SSH_TTY=$(tty); export SSH_TTY; ${run}`, '/dev/null']
    : [host.shell, '-c', run];
  const [program, outerArgv] = enterCommand(machine, {
    argv,
    environment: { ...options.environment, TERM: options.type },
  });
  const pty = spawn(program, outerArgv, {
    cols: bounded(options.columns, 80),
    rows: bounded(options.rows, 24),
    cwd: '/',
    env: outerEnvironment,
    name: options.type,
    // Bytes, not text: a character may be cut by a chunk's end.
    encoding: null,
  });
  // The library's own write neither tells nor bounds how much waits; the stream below it does.
  const input = (pty as unknown as { _socket: Socket })._socket;
  let ended = false;
  pty.onExit(() => {
    ended = true;
  });
  /** `script` ignores a hangup. When it is gone, the kernel hangs up on all that ran in its terminal. */
  async function endInside() {
    const inside = host.mode === 'none' ? pty.pid : await findChild(pty.pid);
    if (!host.script || !inside) return;
    const target = await findProcess(inside);
    if (target) await signalProcess(target, 'SIGKILL');
  }
  return {
    onData: (listener) => void pty.onData((data) => listener(data as unknown as Buffer)),
    write: (data) => input.write(data),
    onDrain: (listener) => void input.on('drain', listener),
    resize: ({ columns, rows }) => {
      try {
        pty.resize(bounded(columns, 80), bounded(rows, 24));
      } catch {
        // It ended between the request and now.
      }
    },
    pause: () => pty.pause(),
    resume: () => pty.resume(),
    onExit: (listener) =>
      void pty.onExit(({ exitCode, signal }) =>
        listener({ code: exitCode, signal: signal || null }),
      ),
    kill: () => {
      // Its pid may belong to another process by now.
      if (ended) return;
      const destroy = () => (pty as unknown as { destroy(): void }).destroy();
      void endInside().then(destroy, destroy);
    },
  };
}

function bounded(value: number, otherwise: number): number {
  return Number.isInteger(value) && value > 0 && value <= 4096 ? value : otherwise;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
