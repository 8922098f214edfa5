// The forwarding requests of one ssh connection, bounded: each becomes a channel joined to a connection
// that was made inside the machine.

import type { Duplex } from 'node:stream';
import type { Connection } from 'ssh2';
import type { Arrival, Forwarder, Listening } from './forwarding.ts';

const channelLimit = 256;
const listenerLimit = 16;

export function serveForwardings(connection: Connection, forwarder: Forwarder) {
  const listeners = new Map<string, Listening>();
  let channels = 0;
  connection.on('close', () => forwarder.close());

  const track = (channel: Duplex) => {
    channels += 1;
    channel.on('close', () => {
      channels -= 1;
    });
  };

  connection.on('tcpip', (accept, reject, { destIP, destPort }) => {
    if (channels >= channelLimit) return reject();
    return void forwarder.connect(destIP, destPort).then(
      (inside) => {
        const channel = accept();
        // The client may have left meanwhile.
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
    if (name !== 'tcpip-forward' || listeners.size >= listenerLimit) return reject?.();
    return void listen(bindAddr, bindPort).then(
      (port) => accept?.(port),
      () => reject?.(),
    );
  });

  async function listen(bindAddr: string, bindPort: number): Promise<number> {
    const host = bindAddr === '' || bindAddr === '*' ? '0.0.0.0' : bindAddr;
    const listening = await forwarder.listen(host, bindPort, (arrival) => {
      if (channels >= channelLimit) return drop(arrival);
      const { address, port } = arrival;
      return connection.forwardOut(bindAddr, listening.port, address, port, (error, channel) => {
        if (error) return drop(arrival);
        track(channel);
        return void arrival.take().then(
          (inside) => join(channel, inside),
          () => channel.destroy(),
        );
      });
    });
    listeners.set(`${bindAddr}:${listening.port}`, listening);
    return listening.port;
  }
}

function drop(arrival: Arrival) {
  void arrival.take().then(
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
