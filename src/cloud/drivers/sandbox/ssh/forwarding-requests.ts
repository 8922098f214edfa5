// Serves the forwarding requests of one ssh connection, within bounds. Each becomes a channel piped to a
// connection inside the machine.

import type { Duplex } from 'node:stream';
import type { Connection } from 'ssh2';
import type { BoundedChannels } from './bounded-channels.ts';
import type { Forwarder, IncomingConnection, RemoteListener } from './forwarding.ts';

const maxChannels = 256;
const maxListeners = 16;

/** Counts the channels of one connection, with those that are still being opened. */
interface Channels {
  /** Returns false if there are as many as there may be. */
  reserve(): boolean;
  release(): void;
  readonly bound: BoundedChannels['bound'];
}

export function serveForwardings(
  connection: Connection,
  { bound }: BoundedChannels,
  forwarder: Forwarder,
) {
  let count = 0;
  const channels: Channels = {
    bound,
    reserve() {
      if (count >= maxChannels) return false;
      count += 1;
      return true;
    },
    release() {
      count -= 1;
    },
  };
  connection.on('close', () => forwarder.close());
  serveConnects(connection, forwarder, channels);
  serveListeners(connection, forwarder, channels);
}

function serveConnects(connection: Connection, forwarder: Forwarder, channels: Channels) {
  connection.on('tcpip', (accept, reject, { destIP, destPort }) => {
    if (!channels.reserve()) return reject();
    return void forwarder.connect(destIP, destPort).then(
      (inside) => {
        const channel = accept();
        // The client may have disconnected meanwhile.
        if (!channel) return inside.destroy();
        channel.on('close', channels.release);
        return join(channels.bound(channel), inside);
      },
      () => {
        channels.release();
        reject();
      },
    );
  });
}

function serveListeners(connection: Connection, forwarder: Forwarder, channels: Channels) {
  const listeners = new Map<string, RemoteListener>();
  /** How many listeners are still being opened. */
  let pending = 0;

  connection.on('request', (accept, reject, name, { bindAddr, bindPort }) => {
    if (name === 'cancel-tcpip-forward') {
      const key = `${bindAddr}:${bindPort}`;
      listeners.get(key)?.close();
      listeners.delete(key);
      return accept?.();
    }
    if (name !== 'tcpip-forward' || listeners.size + pending >= maxListeners) return reject?.();
    pending += 1;
    return void listen(bindAddr, bindPort)
      .finally(() => {
        pending -= 1;
      })
      .then(
        (port) => accept?.(port),
        () => reject?.(),
      );
  });

  async function listen(bindAddr: string, bindPort: number): Promise<number> {
    const host = bindAddr === '' || bindAddr === '*' ? '0.0.0.0' : bindAddr;
    const listener = await forwarder.listen(host, bindPort, (incoming) => {
      if (!channels.reserve()) return drop(incoming);
      const { address, port } = incoming;
      return connection.forwardOut(bindAddr, listener.port, address, port, (error, channel) => {
        if (error) {
          channels.release();
          return drop(incoming);
        }
        // At once, because the agent may take long to answer, and the client may send meanwhile.
        const bounded = channels.bound(channel);
        let isClosed = false;
        bounded.on('close', () => {
          isClosed = true;
          channels.release();
        });
        return void incoming.take().then(
          (inside) => (isClosed ? inside.destroy() : join(bounded, inside)),
          () => discard(bounded),
        );
      });
    });
    const key = `${bindAddr}:${listener.port}`;
    // An earlier one at the same address is dead, or the agent lies about it.
    listeners.get(key)?.close();
    listeners.set(key, listener);
    return listener.port;
  }
}

function drop(incoming: IncomingConnection) {
  void incoming.take().then(
    (inside) => inside.destroy(),
    () => {},
  );
}

function join(channel: Duplex, inside: Duplex) {
  channel.on('error', () => inside.destroy());
  inside.on('error', () => discard(channel));
  channel.on('close', () => inside.destroy());
  inside.on('close', () => discard(channel));
  channel.pipe(inside).pipe(channel);
}

/** Closes a channel whose input goes nowhere. ssh2 emits 'close' only once all input was read. */
function discard(channel: Duplex) {
  channel.unpipe().resume();
  channel.destroy();
}
