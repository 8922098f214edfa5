// Clients that close their side of the connection after the request, as `nc -N` and some load balancers do, get the
// response. One that has left looks the same until something is sent to it: its computer then resets the connection.
// So a response that is not ready is preceded by interim ones, which HTTP/1.1 lets clients ignore.

import type { Server, ServerResponse } from 'node:http';
import type { HttpSocket } from './node-http.ts';

/** The event of a response that can send something at any time. Others end once they are silent. */
export const probed = 'probed';

const probeEveryMs = 5_000;

export function answerHalfClosed(server: Server): void {
  // Node reads this at the end of each connection. Over TLS, it closes its own side all the same.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('connection', (socket: HttpSocket) => socket.once('end', () => probe(socket)));
}

/** False if nothing may be sent now. */
function sendSomething(response: ServerResponse): boolean {
  if (response.headersSent) return response.emit(probed);
  // HTTP/1.0 has no interim responses.
  if (response.req.httpVersion === '1.0') return false;
  response.writeProcessing();
  return true;
}

function probe(socket: HttpSocket): void {
  const response = socket._httpMessage;
  if (socket.destroyed || response == null || response.writableEnded) return;
  if (!sendSomething(response) && response.writableLength === 0) return void socket.destroy();
  setTimeout(probe, probeEveryMs, socket).unref();
}
