// The forwarding requests of one ssh connection, bounded: each becomes a channel joined to a connection
// that was made inside the machine.

import type { Duplex } from 'node:stream';
import type { Connection } from 'ssh2';
import type { Forwarder, Listening } from './forwarding.ts';

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

  connection.on('tcpip', async (accept, reject, { destIP, destPort }) => {
    if (channels >= channelLimit) return reject();
    try {
      const inside = await forwarder.connect(destIP, destPort);
      const channel = accept();
      track(channel);
      join(channel, inside);
    } catch {
      reject();
    }
  });

  connection.on('request', async (accept, reject, name, info) => {
    if (name !== 'tcpip-forward' && name !== 'cancel-tcpip-forward') return reject?.();
    const { bindAddr, bindPort } = info;
    const key = `${bindAddr}:${bindPort}`;
    if (name === 'cancel-tcpip-forward') {
      listeners.get(key)?.close();
      listeners.delete(key);
      return accept?.();
    }
    if (listeners.size >= listenerLimit) return reject?.();
    try {
      const host = bindAddr === '' || bindAddr === '*' ? '0.0.0.0' : bindAddr;
      const listening = await forwarder.listen(host, bindPort, (arrival) => {
        if (channels >= channelLimit) return;
        const { address, port } = arrival;
        connection.forwardOut(bindAddr, listening.port, address, port, async (error, channel) => {
          const inside = await arrival.take().catch(() => null);
          if (!error) track(channel);
          if (inside && !error) join(channel, inside);
          else (inside ?? channel)?.destroy();
        });
      });
      listeners.set(`${bindAddr}:${listening.port}`, listening);
      accept?.(listening.port);
    } catch {
      reject?.();
    }
    return undefined;
  });
}

function join(channel: Duplex, inside: Duplex) {
  channel.on('error', () => inside.destroy());
  inside.on('error', () => channel.destroy());
  channel.on('close', () => inside.destroy());
  inside.on('close', () => channel.destroy());
  channel.pipe(inside).pipe(channel);
}
