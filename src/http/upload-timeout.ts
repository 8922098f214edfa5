// A request whose body may take longer than the server gives every other: an upload of gigabytes. It is held
// to not falling silent instead.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const mark = Symbol('a long body is coming');
const silenceMs = 60_000;

type Marked = Duplex & { [mark]?: true };

export function allowLongBody(request: IncomingMessage): void {
  const socket: IncomingMessage['socket'] & Marked = request.socket;
  const cut = () => socket.destroy();
  const finish = () => {
    delete socket[mark];
    socket.off('timeout', cut).setTimeout(0);
    request.off('end', finish).off('close', finish);
  };
  if (request.complete) return;
  socket[mark] = true;
  socket.setTimeout(silenceMs).once('timeout', cut);
  request.once('end', finish).once('close', finish);
}

export const hasLongBody = (socket: Duplex) => (socket as Marked)[mark] === true;
