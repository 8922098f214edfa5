// Whether a machine's ssh server answers: it greets whoever connects. A firewall rule may keep us out; then
// the machine itself is asked whether somebody listens.

import { connect } from 'node:net';
import type { DaemonClient } from './client.ts';

const greetingMs = 700;

export type Greeting =
  | 'answers'
  /** The machine is there, its ssh server not yet. */
  | 'refused'
  /** No answer at all: not up yet, or not for us. */
  | 'silent';

export function greet(address: string, port = 22): Promise<Greeting> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const finish = (greeting: Greeting) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(greeting);
    };
    const timer = setTimeout(finish, greetingMs, 'silent');
    socket.once('data', (data) =>
      finish(data.toString('latin1').startsWith('SSH-') ? 'answers' : 'refused'),
    );
    socket.once('error', (error: NodeJS.ErrnoException) =>
      finish(error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET' ? 'refused' : 'silent'),
    );
    socket.once('close', () => finish('refused'));
  });
}

/** Looks into the kernel's own table, since no program for it is sure to be in the image. */
export async function listensInside(client: DaemonClient, instancePath: string): Promise<boolean> {
  const look =
    'grep -hqE "^ *[0-9]+: [0-9A-F]+:0016 [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6';
  const body = { command: ['sh', '-c', look], 'wait-for-websocket': false, interactive: false };
  const { metadata } = await client.run('POST', `${instancePath}/exec`, { body, waitMs: 10_000 });
  return metadata?.return === 0;
}
