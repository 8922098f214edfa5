// A pseudo-terminal of this host by node-pty, with what node-pty's interface does not offer. Each
// field is checked before it is used: a release that renames one must fail here.

import assert from 'node:assert';
import { Socket } from 'node:net';
import { type IPty, type IPtyForkOptions, spawn } from '@lydell/node-pty';

export interface Pty {
  readonly terminal: Pick<IPty, 'pid' | 'resize' | 'pause' | 'resume' | 'onExit'>;
  /** The side of this process. */
  readonly fd: number;
  /** True once the file descriptor must not be used: it may belong to another file. */
  isClosed(): boolean;
  onData(listener: (data: Buffer) => void): void;
  /** Closes the terminal, which ends its program. */
  destroy(): void;
}

export function openPty(program: string, argv: string[], options: IPtyForkOptions): Pty {
  // Bytes, not text: a chunk may end within a character.
  const terminal = spawn(program, argv, { ...options, encoding: null });
  const hidden = terminal as unknown as { fd: number; _socket: Socket; destroy(): void };
  const { fd, _socket: socket } = hidden;
  assert(Number.isInteger(fd), 'node-pty has no file descriptor');
  assert(socket instanceof Socket, 'node-pty has no socket');
  assert(typeof hidden.destroy === 'function', 'node-pty has no destroy');
  return {
    terminal,
    fd,
    isClosed: () => socket.destroyed,
    onData: (listener) => void terminal.onData((data) => listener(data as unknown as Buffer)),
    destroy: () => hidden.destroy(),
  };
}
