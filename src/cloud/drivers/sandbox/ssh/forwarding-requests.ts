// Serves the forwarding requests of one ssh connection, within bounds. Each becomes a channel piped to a
// connection inside the machine.

import type { Duplex } from 'node:stream';
import type { Connection } from 'ssh2';
import type { Forwarder, IncomingConnection, RemoteListener } from './forwarding.ts';

const maxChannels = 256;
const maxListeners = 16;

export function serveForwardings(connection: Connection, forwarder: Forwarder) {
  const listeners = new Map<string, RemoteListener>();
  let channels = 0;
  connection.on('close', () => forwarder.close());

  const track = (channel: Duplex) => {
    channels += 1;
    channel.on('close', () => {
      channels -= 1;
    });
  };

  connection.on('tcpip', (accept, reject, { destIP, destPort }) => {
    if (channels >= maxChannels) return reject();
    return void forwarder.connect(destIP, destPort).then(
      (inside) => {
        const channel = accept();
        // The client may have disconnected meanwhile.
        if (!channel) return inside.destroy();
        track(channel);
        return join(channel, inside);
      },
      () => reject(),
    );
  });

  connection.on('request', (accept, reject, name, { bindAddr, bindPort }) => {
    if (name === 'cancel-tcpip-forward') {
      const key = `${bindAddr}:${bindPort}`;
      listeners.get(key)?.close();
      listeners.delete(key);
      return accept?.();
    }
    if (name !== 'tcpip-forward' || listeners.size >= maxListeners) return reject?.();
    return void listen(bindAddr, bindPort).then(
      (port) => accept?.(port),
      () => reject?.(),
    );
  });

  async function listen(bindAddr: string, bindPort: number): Promise<number> {
    const host = bindAddr === '' || bindAddr === '*' ? '0.0.0.0' : bindAddr;
    const listening = await forwarder.listen(host, bindPort, (incoming) => {
      if (channels >= maxChannels) return drop(incoming);
      const { address, port } = incoming;
      return connection.forwardOut(bindAddr, listening.port, address, port, (error, channel) => {
        if (error) return drop(incoming);
        track(channel);
        return void incoming.take().then(
          (inside) => join(channel, inside),
          () => channel.destroy(),
        );
      });
    });
    listeners.set(`${bindAddr}:${listening.port}`, listening);
    return listening.port;
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
  inside.on('error', () => channel.destroy());
  channel.on('close', () => inside.destroy());
  inside.on('close', () => channel.destroy());
  channel.pipe(inside).pipe(channel);
}
