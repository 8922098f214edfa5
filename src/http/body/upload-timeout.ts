// Exempts a request from the server's timeout for receiving it, for uploads that may take long. Such a request
// is closed if no byte arrives for a minute.

import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { maxStuckMs } from '#http/stuck-connections.ts';

const mark = Symbol('long body expected');
const idleMs = 60_000;

type Marked = Duplex & { [mark]?: true };

export function allowLongBody(request: IncomingMessage): void {
  const socket: IncomingMessage['socket'] & Marked = request.socket;
  const cut = () => socket.destroy();
  const finish = () => {
    delete socket[mark];
    socket.off('timeout', cut).setTimeout(maxStuckMs);
    request.off('end', finish).off('close', finish);
  };
  // A request of Fastify's inject() has no real socket.
  if (request.complete || !(socket instanceof Socket)) return;
  socket[mark] = true;
  socket.setTimeout(idleMs).once('timeout', cut);
  request.once('end', finish).once('close', finish);
}

export const hasLongBody = (socket: Duplex) => (socket as Marked)[mark] === true;
