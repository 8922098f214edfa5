// One session channel of an ssh connection: environment and terminal, then one shell, command or sftp
// subsystem, whose exit status is sent back.

import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { ServerChannel, Session } from 'ssh2';
import type { Terminal } from '#cloud/drivers/driver.ts';
import { nodeInside } from '#cloud/drivers/sandbox/agent-program.ts';
import {
  type RunningMachine,
  signalInside,
  spawnInside,
} from '#cloud/drivers/sandbox/machine/enter.ts';
import { openSandboxTerminal } from '#cloud/drivers/sandbox/machine/terminal/terminal.ts';

export interface SessionContext {
  /** Value of SSH_CONNECTION. */
  readonly from: string;
  /** Called once, with the session's channel. */
  readonly bound: (channel: ServerChannel) => ServerChannel;
}

const maxVariables = 64;
const maxVariableBytes = 4096;

export function serveSession(
  machine: RunningMachine,
  session: Session,
  { from, bound }: SessionContext,
) {
  const environment: Record<string, string> = { SSH_CONNECTION: from };
  let terminalRequest: { term: string; cols: number; rows: number } | undefined;
  let terminal: Terminal | undefined;
  let child: ChildProcess | undefined;

  session.on('env', (accept, reject, { key, val }) => {
    const fits = Object.keys(environment).length < maxVariables && val.length <= maxVariableBytes;
    if (!fits || !/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(key)) return reject?.();
    environment[key] = val;
    accept?.();
  });
  session.on('pty', (accept, _reject, { cols, rows, term }) => {
    terminalRequest = { cols, rows, term: /^[\w.+-]{1,64}$/.test(term ?? '') ? term! : 'xterm' };
    accept?.();
  });
  session.on('window-change', (accept, _reject, { cols, rows }) => {
    terminal?.resize({ columns: cols, rows });
    accept?.();
  });
  session.on('signal', (accept, _reject, { name }) => {
    const signal = `SIG${name}` as NodeJS.Signals;
    if (child && signal in constants.signals) void signalInside(machine, child, signal);
    accept?.();
  });
  // Agent and X11 forwarding are refused; the client warns and continues without them.
  session.on('auth-agent', (_accept, reject) => reject?.());
  session.on('x11', (_accept, reject) => reject?.());

  const run = (channel: ServerChannel, argv: readonly string[]) => {
    child = spawnInside(machine, { argv, environment });
    connectProcess(channel, child);
  };
  const start = (channel: ServerChannel, command: string | null) => {
    const { shell } = machine.host;
    if (!terminalRequest)
      return run(channel, command === null ? [shell, '-l'] : [shell, '-c', command]);
    const { cols, rows, term } = terminalRequest;
    const size = { columns: cols, rows };
    terminal = openSandboxTerminal(machine, { command, ...size, type: term, environment });
    return connectTerminal(channel, terminal);
  };
  const open = (
    accept: () => ServerChannel | undefined,
    start: (channel: ServerChannel) => void,
  ) => {
    const channel = accept();
    // A session has one program. ssh2 opens no channel for another.
    if (channel) attempt(bound(channel), start);
  };
  session.on('shell', (accept) => open(accept, (channel) => start(channel, null)));
  session.on('exec', (accept, _reject, { command }) =>
    open(accept, (channel) => start(channel, command)),
  );
  session.on('subsystem', (accept, reject, { name }) => {
    if (name !== 'sftp') return reject();
    return open(accept, (channel) => run(channel, sftpCommand(machine)));
  });
}

function attempt(channel: ServerChannel, start: (channel: ServerChannel) => void) {
  try {
    start(channel);
  } catch {
    // The client's input caused it: a zero byte, or more arguments than the kernel accepts.
    finish(channel, 126, null);
  }
}

/** Prefers OpenSSH's server where the host has it: it is visible inside and starts faster than Node. */
function sftpCommand({ host }: RunningMachine): string[] {
  if (host.sftpServer) return [host.sftpServer];
  return nodeInside(host.mode, 'sftp-server');
}

function connectProcess(channel: ServerChannel, child: ChildProcess) {
  const { stdin, stdout, stderr } = child;
  // The command may not read its input, and the client may not read the output.
  for (const stream of [stdin, stdout, stderr, channel]) stream?.on('error', () => {});
  channel.pipe(stdin!);
  stdout!.pipe(channel, { end: false });
  stderr!.pipe(channel.stderr, { end: false });
  // As with sshd, a command without a terminal survives its client's disconnect; its pipes break.
  channel.on('close', () => {
    stdin!.destroy();
    stdout!.destroy();
    stderr!.destroy();
  });
  child.on('error', () => finish(channel, 126, null));
  child.on('close', (code, signal) => finish(channel, code, signal));
}

function connectTerminal(channel: ServerChannel, terminal: Terminal) {
  channel.on('error', () => {});
  channel.on('data', (data: Buffer) => {
    if (!terminal.write(data)) channel.pause();
  });
  terminal.onDrain(() => channel.resume());
  channel.on('close', () => terminal.kill());
  terminal.onData((data) => {
    if (!channel.write(data)) terminal.pause();
  });
  channel.on('drain', () => terminal.resume());
  terminal.onExit(({ code, signal }) => {
    const name = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0];
    finish(channel, name ? null : code, (name as NodeJS.Signals) ?? null);
  });
}

function finish(channel: ServerChannel, code: number | null, signal: NodeJS.Signals | null) {
  if (channel.destroyed) return;
  // Ending the channel would discard errors that wait for the client.
  channel.stderr.end(() => {
    if (signal) channel.exit(signal.replace(/^SIG/, ''), false);
    else channel.exit(code ?? 255);
    channel.end();
  });
}
