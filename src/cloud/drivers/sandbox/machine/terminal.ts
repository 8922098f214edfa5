// Terminals inside a machine, for `ssh -t` and the browser. `script` opens a pseudo-terminal of the machine,
// so that programs inside can find it by name; the one outside only carries size and bytes.

import type { Socket } from 'node:net';
import { spawn } from '@lydell/node-pty';
import type { Terminal, TerminalSize } from '#cloud/drivers/driver.ts';
import { shellQuote } from '#lib/text/shell-quote.ts';
import { enterCommand, type RunningMachine } from './enter.ts';
import { outerEnvironment } from './leave-host.ts';
import { findChild, findProcess, signalProcess } from './process-identity.ts';
import { TerminalInput } from './terminal-input.ts';

export interface TerminalOptions extends TerminalSize {
  /** Command to run; null for the login shell. */
  readonly command: string | null;
  readonly type: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export function openSandboxTerminal(machine: RunningMachine, options: TerminalOptions): Terminal {
  const { host } = machine;
  const shell = shellQuote(host.shell);
  const run =
    options.command === null
      ? `exec ${shell} -l`
      : `exec ${shell} -c ${shellQuote(options.command)}`;
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
    // Bytes, not text: a chunk may end within a character.
    encoding: null,
  });
  const { fd, _socket: stream } = pty as unknown as { fd: number; _socket: Socket };
  const input = new TerminalInput(fd, () => !stream.destroyed);
  let ended = false;
  pty.onExit(() => {
    ended = true;
  });
  /** Kills `script`, which ignores SIGHUP. The kernel then sends SIGHUP to the programs in its terminal. */
  async function killInside() {
    const inside = host.mode === 'none' ? pty.pid : await findChild(pty.pid);
    if (!host.script || !inside) return;
    const target = await findProcess(inside);
    if (target) await signalProcess(target, 'SIGKILL');
  }
  return {
    onData: (listener) => void pty.onData((data) => listener(data as unknown as Buffer)),
    write: (data) => input.write(data),
    onDrain: (listener) => input.onDrain(listener),
    resize: ({ columns, rows }) => {
      try {
        pty.resize(bounded(columns, 80), bounded(rows, 24));
      } catch {
        // The terminal has just ended.
      }
    },
    pause: () => pty.pause(),
    resume: () => pty.resume(),
    onExit: (listener) =>
      void pty.onExit(({ exitCode, signal }) =>
        listener({ code: exitCode, signal: signal || null }),
      ),
    kill: () => {
      // The kernel may have reused its pid.
      if (ended) return;
      const destroy = () => (pty as unknown as { destroy(): void }).destroy();
      void killInside().then(destroy, destroy);
    },
  };
}

function bounded(value: number, fallback: number): number {
  return Number.isInteger(value) && value > 0 && value <= 4096 ? value : fallback;
}
