// Closes connections whose client does not read the response: what waits to be sent stays in
// memory. Idle ones are closed by Node's keep-alive timeout, which uses the same event.

import type { Server } from 'node:http';
import type { HttpSocket } from './node-http.ts';

/** How long a client may take none of the bytes that wait for it. */
export const maxStuckMs = 300_000;

export function closeStuckConnections(server: Server, afterMs = maxStuckMs): void {
  server.setTimeout(afterMs, (socket: HttpSocket) => {
    // A response may take longer before its first byte, or between two.
    const isServing = socket._httpMessage != null && socket.writableLength === 0;
    if (!isServing) socket.destroy();
  });
}
