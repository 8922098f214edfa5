// A program in a terminal of a machine, through the daemon's exec, which needs neither network nor
// ssh: one websocket for the data, one for window sizes.

import { setTimeout as pause } from 'node:timers/promises';
import type { MessageEvent, WebSocket } from 'undici';
import type { Terminal, TerminalSize } from '#cloud/drivers/driver.ts';
import type { DaemonClient, Operation } from '#cloud/drivers/incus/daemon/client.ts';

type TerminalExit = Parameters<Parameters<Terminal['onExit']>[0]>[0];

const maxWaitingBytes = 256 * 1024;
/** How long to wait for output after the program has ended. */
const lastOutputMs = 2_000;
/** How long to wait for the end of a program that was killed. The daemon may never tell. */
const killedMs = 10_000;

export async function openInstanceTerminal(
  client: DaemonClient,
  instancePath: string,
  { command, ...size }: TerminalSize & { readonly command: readonly string[] },
): Promise<Terminal> {
  const operation = await client.run('POST', `${instancePath}/exec`, {
    returnWhenStarted: true,
    body: {
      command,
      environment: { TERM: 'xterm-256color' },
      interactive: true,
      'wait-for-websocket': true,
      width: bounded(size.columns, 80),
      height: bounded(size.rows, 24),
    },
  });
  const fds = (operation.metadata?.fds ?? {}) as Record<string, string>;
  const path = `/1.0/operations/${operation.id}/websocket`;
  const data = client.pausableWebSocket(path, { secret: fds['0'] });
  const control = client.webSocket(path, { secret: fds.control });
  data.socket.binaryType = 'arraybuffer';
  await Promise.all([opened(data.socket), opened(control)]);
  const connection = data.connection();
  // A text frame marks the end of the output; the daemon then waits for the socket to close.
  data.socket.addEventListener('message', ({ data: bytes }: MessageEvent) => {
    if (typeof bytes === 'string') data.socket.close();
  });
  const closed = new Promise((resolve) => data.socket.addEventListener('close', resolve));
  const killed = Promise.withResolvers<TerminalExit>();
  const ended = waitForExit(client, operation).then(async (exit) => {
    // The last output may arrive after the exit is known.
    await Promise.race([closed, pause(lastOutputMs, undefined, { ref: false })]);
    return exit;
  });
  const exit = Promise.race([ended, killed.promise]);
  void exit.then(() => {
    control.close();
    data.socket.close();
  });
  const order = (message: object) => {
    if (control.readyState === control.OPEN) control.send(JSON.stringify(message));
  };
  return {
    onData: (listener) =>
      data.socket.addEventListener('message', ({ data: bytes }: MessageEvent) => {
        if (typeof bytes !== 'string') listener(Buffer.from(bytes as ArrayBuffer));
      }),
    write(bytes) {
      if (data.socket.readyState === data.socket.OPEN) data.socket.send(new Uint8Array(bytes));
      return connection.writableLength < maxWaitingBytes;
    },
    onDrain: (listener) => void connection.on('drain', listener),
    resize: ({ columns, rows }) =>
      order({
        command: 'window-resize',
        args: { width: `${bounded(columns, 80)}`, height: `${bounded(rows, 24)}` },
      }),
    pause: () => void connection.pause(),
    resume: () => void connection.resume(),
    onExit: (listener) => void exit.then(listener),
    kill() {
      order({ command: 'signal', signal: 9 });
      data.socket.close();
      setTimeout(killed.resolve, killedMs, { code: 137, signal: 9 }).unref();
    },
  };
}

async function waitForExit(client: DaemonClient, { id }: Operation): Promise<TerminalExit> {
  try {
    const { metadata } = await client.wait(id);
    const code = Number(metadata?.return ?? 0);
    // As in shells, 128 plus the signal.
    return code > 128 ? { code, signal: code - 128 } : { code, signal: null };
  } catch {
    return { code: 1, signal: null };
  }
}

function opened(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    for (const event of ['error', 'close'] as const)
      socket.addEventListener(event, () => reject(new Error('The terminal could not be opened.')));
  });
}

function bounded(value: number, otherwise: number): number {
  return Number.isInteger(value) && value > 0 && value <= 4096 ? value : otherwise;
}
