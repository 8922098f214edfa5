// Tells whether a machine's ssh server responds: it greets every client that connects. If a firewall rule
// blocks this server, the daemon looks inside the machine for a listening socket.

import { connect } from 'node:net';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { type DaemonInstance, instancePath } from './instance.ts';

const greetingTimeoutMs = 700;
/** How long a machine may be silent after its start before the daemon looks inside it. */
const maxSilenceMs = 5_000;

export interface SshProbe {
  /** Resolves to true once the machine's ssh server has responded since its last start. */
  responds(id: string, instance: DaemonInstance, address: string): Promise<boolean>;
  forget(id: string): void;
}

export function createSshProbe(client: DaemonClient): SshProbe {
  /** Start time of each machine whose ssh server has responded, by id. */
  const proven = new Map<string, string>();
  const probing = new Map<string, Promise<boolean>>();
  return {
    async responds(id, instance, address) {
      const startedAt = instance.last_used_at;
      if (proven.get(id) === startedAt) return true;
      let current = probing.get(id);
      if (!current) {
        current = probe(client, instance, address).finally(() => probing.delete(id));
        probing.set(id, current);
      }
      const responds = await current;
      if (responds) proven.set(id, startedAt);
      return responds;
    },
    forget: (id) => void proven.delete(id),
  };
}

async function probe(
  client: DaemonClient,
  instance: DaemonInstance,
  address: string,
): Promise<boolean> {
  const greeting = await greet(address);
  if (greeting !== 'silent') return greeting === 'greets';
  // The absolute value, because either clock may be wrong. A machine started just now may still come up.
  const sinceStartMs = Math.abs(Date.now() - Date.parse(instance.last_used_at));
  if (sinceStartMs < maxSilenceMs) return false;
  return listensInside(client, instancePath(instance.name)).catch(() => false);
}

type Greeting =
  | 'greets'
  /** The machine is up but its ssh server is not. */
  | 'refused'
  /** No response: the machine is not up yet, or it blocks this server. */
  | 'silent';

function greet(address: string, port = 22): Promise<Greeting> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const finish = (greeting: Greeting) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(greeting);
    };
    const timer = setTimeout(finish, greetingTimeoutMs, 'silent');
    socket.once('data', (data) =>
      finish(data.toString('latin1').startsWith('SSH-') ? 'greets' : 'refused'),
    );
    socket.once('error', (error: NodeJS.ErrnoException) =>
      finish(error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET' ? 'refused' : 'silent'),
    );
    socket.once('close', () => finish('refused'));
  });
}

/** Reads the kernel's socket table, because an image need not contain a program for it. */
async function listensInside(client: DaemonClient, path: string): Promise<boolean> {
  const look =
    'grep -hqE "^ *[0-9]+: [0-9A-F]+:0016 [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6';
  const body = { command: ['sh', '-c', look], 'wait-for-websocket': false, interactive: false };
  const { metadata } = await client.run('POST', `${path}/exec`, { body, waitMs: 10_000 });
  return metadata?.return === 0;
}
