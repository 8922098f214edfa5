// How a server ends: nobody new is let in, running answers may finish, and those that do not are told so before
// their connections are closed.

import type { FastifyInstance } from 'fastify';

/** For the last words of those that are cut off. */
const lastWordsMs = 300;

/** `cutOff` fails whatever still runs after that time. Resolves when the last connection is closed. */
export async function drain(
  app: FastifyInstance,
  { drainMs, cutOff }: { drainMs: number; cutOff: () => void },
): Promise<void> {
  const { server } = app;
  // A connection that falls idle after its last answer would else be waited for until the end.
  const hurry = setInterval(() => server.closeIdleConnections(), 100);
  const cut = setTimeout(cutOff, drainMs);
  const close = setTimeout(() => server.closeAllConnections(), drainMs + lastWordsMs);
  await app.close();
  clearInterval(hurry);
  clearTimeout(cut);
  clearTimeout(close);
}
