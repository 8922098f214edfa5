// The bounds that ssh2 leaves to its user. Its channels believe what the client says about packets and windows,
// and write without regard to the socket, so a client could fill the memory or hold up the process.

import type { Duplex } from 'node:stream';
import type { Connection } from 'ssh2';
import {
  forgetUnfinished,
  type Ssh2Channel,
  toSsh2Channel,
  watchKeyExchange,
} from './ssh2-internals.ts';

/** Smaller packets cost more to encipher than they carry. OpenSSH's are 32 KiB. */
const minPacketBytes = 1024;

type Done = (error?: Error | null) => void;

export interface BoundedChannels {
  /** Bounds a channel that has just been opened. */
  bound<Opened extends Duplex>(channel: Opened): Opened;
}

/** Drops the connection of a client that breaks a bound. */
export function boundChannels(
  connection: Connection,
  socket: Duplex,
  drop: () => void,
): BoundedChannels {
  const waiting: (() => void)[] = [];
  const opened = new Set<Duplex>();
  const isExchangingKeys = watchKeyExchange(connection);
  const mayWrite = () => !socket.destroyed && !socket.writableNeedDrain && !isExchangingKeys();

  function writeWaiting() {
    while (mayWrite()) {
      const write = waiting.shift();
      if (write === undefined) return;
      write();
    }
  }
  socket.on('drain', writeWaiting);
  connection.on('rekey', writeWaiting);
  // ssh2 ends a channel only when all its input was read. The program may never read it.
  connection.on('close', () => {
    for (const channel of opened) channel.unpipe().removeAllListeners('data').resume();
  });

  /** Runs the write once the socket has room. Channels take turns. */
  function whenReady(write: () => void) {
    if (waiting.length === 0 && mayWrite()) write();
    else waiting.push(write);
  }

  return {
    bound(stream) {
      const channel = toSsh2Channel(stream);
      if (channel.outgoing.packetSize < minPacketBytes) drop();
      orderWrites(channel, whenReady);
      const push = channel.push.bind(channel);
      channel.push = (data: Buffer | null) => {
        // ssh2 subtracts what arrives, and refuses data only if the window is exactly zero.
        if (channel.incoming.window >= 0) return push(data);
        drop();
        return false;
      };
      opened.add(channel);
      channel.on('close', () => opened.delete(channel));
      return stream;
    },
  };
}

/**
 * Lets output and errors be written one after the other. If both waited for the client's window, ssh2 would repeat
 * the one and forget the other.
 */
function orderWrites(channel: Ssh2Channel, whenReady: (write: () => void) => void) {
  const next: (() => void)[] = [];
  let current: Done | null = null;
  for (const stream of [channel, channel.stderr]) {
    const write = stream._write.bind(stream);
    stream._write = (data, encoding, done: Done) => {
      // ssh2 goes on with a write that waited for the window.
      if (done === current) return whenReady(() => write(data, encoding, done));
      const finish: Done = (error) => {
        current = null;
        forgetUnfinished(channel);
        // The other stream first: `done` starts the next write of this one.
        next.shift()?.();
        done(error);
      };
      const start = () => {
        current = finish;
        whenReady(() => write(data, encoding, finish));
      };
      return current === null ? start() : void next.push(start);
    };
  }
}
