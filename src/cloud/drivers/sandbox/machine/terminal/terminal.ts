// Terminals inside a machine, for `ssh -t` and the browser. `script` opens a pseudo-terminal of the machine,
// so that programs inside can find it by name; the one outside only carries size and bytes.

import type { Terminal, TerminalSize } from '#cloud/drivers/driver.ts';
import { enterCommand, type RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import { outerEnvironment } from '#cloud/drivers/sandbox/machine/leave-host.ts';
import {
  findChild,
  findProcess,
  signalProcess,
} from '#cloud/drivers/sandbox/machine/process-identity.ts';
import { shellQuote } from '#lib/text/shell-quote.ts';
import { openPty } from './pty.ts';
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
  const pty = openPty(program, outerArgv, {
    cols: bounded(options.columns, 80),
    rows: bounded(options.rows, 24),
    cwd: '/',
    env: outerEnvironment,
    name: options.type,
  });
  const { terminal } = pty;
  const input = new TerminalInput(pty.fd, () => !pty.isClosed());
  let ended = false;
  terminal.onExit(() => {
    ended = true;
  });
  /** Kills `script`, which ignores SIGHUP. The kernel then sends SIGHUP to the programs in its terminal. */
  async function killInside() {
    const inside = host.mode === 'none' ? terminal.pid : await findChild(terminal.pid);
    if (!host.script || !inside) return;
    const target = await findProcess(inside);
    if (target) await signalProcess(target, 'SIGKILL');
  }
  return {
    onData: (listener) => pty.onData(listener),
    write: (data) => input.write(data),
    onDrain: (listener) => input.onDrain(listener),
    resize: ({ columns, rows }) => {
      try {
        terminal.resize(bounded(columns, 80), bounded(rows, 24));
      } catch {
        // The terminal has just ended.
      }
    },
    pause: () => terminal.pause(),
    resume: () => terminal.resume(),
    onExit: (listener) =>
      void terminal.onExit(({ exitCode, signal }) =>
        listener({ code: exitCode, signal: signal || null }),
      ),
    kill: () => {
      // The kernel may have reused its pid.
      if (ended) return;
      void killInside().then(pty.destroy, pty.destroy);
    },
  };
}

function bounded(value: number, fallback: number): number {
  return Number.isInteger(value) && value > 0 && value <= 4096 ? value : fallback;
}
