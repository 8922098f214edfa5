// The bounds that ssh2 leaves to its user. Its channels believe what the client says about packets and windows,
// and write without regard to the socket, so a client could fill the memory or hold up the process.

import type { Duplex } from 'node:stream';
import type { Connection, ServerChannel } from 'ssh2';

/** Smaller packets cost more to encipher than they carry. OpenSSH's are 32 KiB. */
const minPacketBytes = 1024;

/** Where ssh2 keeps a write that waits for the window. It goes on with any that is there, also an earlier one. */
const unfinished = ['_chunk', '_chunkcb', '_chunkErr', '_chunkcbErr'] as const;

/** What ssh2's channels have and its types don't. */
type Channel = ServerChannel & {
  readonly incoming: { readonly window: number };
  readonly outgoing: { readonly packetSize: number };
} & Partial<Record<(typeof unfinished)[number], unknown>>;
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
  const protocol = (connection as unknown as { _protocol: { _kexinit?: unknown } })._protocol;
  // While keys are exchanged, ssh2 queues what is sent.
  const mayWrite = () =>
    !socket.destroyed && !socket.writableNeedDrain && protocol._kexinit === undefined;

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
      const channel = stream as unknown as Channel;
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
function orderWrites(channel: Channel, whenReady: (write: () => void) => void) {
  const next: (() => void)[] = [];
  let current: Done | null = null;
  for (const stream of [channel, channel.stderr]) {
    const write = stream._write.bind(stream);
    stream._write = (data, encoding, done: Done) => {
      // ssh2 goes on with a write that waited for the window.
      if (done === current) return whenReady(() => write(data, encoding, done));
      const finish: Done = (error) => {
        current = null;
        for (const name of unfinished) channel[name] = undefined;
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
