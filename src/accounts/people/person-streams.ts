// Event streams of people who are signed in: a limit per person, and an end when the person is signed out or the server
// stops.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Authenticator, sessionOf } from '#accounts/authenticate.ts';
import { ClientDisconnect, onClosed } from '#http/client-disconnect.ts';
import { toHeaderObject } from '#http/response-headers.ts';
import { createEventStreams, type EventStream, eventStreamHeaders } from '#http/sse.ts';
import { rateLimited } from '#lib/errors.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';

export interface PersonStream extends EventStream {
  /** False once the stream has ended or the client has left. */
  isOpen(): boolean;
  /** True while the client does not read what was sent. */
  isFull(): boolean;
  /** Calls the listener at once if the stream is closed already. */
  onClose(listener: () => void): void;
}

/** Opens streams. A route that does must have no HEAD: its response would wait for an end that may never come. */
export type OpenPersonStream = (request: FastifyRequest, reply: FastifyReply) => PersonStream;

/** How often to check that the person is still signed in. */
const recheckMs = 2000;
const retryMs = 5000;

export function createPersonStreams(
  app: FastifyInstance,
  authenticator: Authenticator,
  maxPerPerson: number,
): OpenPersonStream {
  const eventStreams = createEventStreams();
  const counts = new KeyCounts();
  const streams = new Set<PersonStream>();
  // Closing the server waits for open streams.
  app.addHook('preClose', async () => {
    for (const stream of streams) stream.end();
  });

  return (request, reply) => {
    const { userId } = sessionOf(request);
    if (counts.get(userId) >= maxPerPerson)
      throw rateLimited(`You can have at most ${maxPerPerson} of these streams open.`, retryMs);
    counts.add(userId);
    reply.hijack();
    const { raw } = reply;
    const own = reply.getHeaders() as Record<string, string>;
    const headers = Object.entries({ ...own, ...toHeaderObject(eventStreamHeaders) }).flat();
    const events = eventStreams.open(raw, headers, { signal: new ClientDisconnect(raw) });
    const stream: PersonStream = {
      send: (data) => events.send(data),
      pass: (block) => events.pass(block),
      end: () => events.end(),
      isOpen: () => !raw.writableEnded && !raw.destroyed,
      isFull: () => raw.writableNeedDrain,
      // The client may have left before the stream was opened.
      onClose: (listener) => onClosed(raw, listener),
    };
    const recheck = setInterval(() => {
      // While the database is unavailable, the stream goes on.
      authenticator.findSession(request).then(
        (session) => session ?? stream.end(),
        () => {},
      );
    }, recheckMs).unref();
    streams.add(stream);
    stream.onClose(() => {
      clearInterval(recheck);
      streams.delete(stream);
      counts.remove(userId);
    });
    return stream;
  };
}
