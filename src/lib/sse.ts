// Server-sent events onto a raw response: back-pressure, a comment line while nothing comes so that
// proxies keep the connection, and no work per event but the write.

import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

export interface EventStream {
  /** Sends one `data:` event; resolves when more may be written. */
  send(data: string): Promise<void> | undefined;
  /** Sends whole events as they are; every character is one byte. */
  pass(events: string): Promise<void> | undefined;
  end(): void;
}

const pingMs = 15_000;

/** Takes the response over from Fastify. Call it only once the first event exists. */
export function openEventStream(reply: FastifyReply, signal: AbortSignal): EventStream {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  });
  let lastWrite = Date.now();
  const ping = setInterval(() => {
    if (Date.now() - lastWrite >= pingMs) raw.write(': ping\n\n');
  }, pingMs).unref();
  raw.once('close', () => clearInterval(ping));

  function write(text: string, encoding: BufferEncoding): Promise<void> | undefined {
    lastWrite = Date.now();
    if (raw.write(text, encoding) || signal.aborted) return undefined;
    return once(raw, 'drain', { signal }).then(
      () => {},
      () => {},
    );
  }

  return {
    send: (data) => write(`data: ${data}\n\n`, 'utf8'),
    pass: (events) => write(events, 'latin1'),
    end() {
      clearInterval(ping);
      raw.end();
    },
  };
}
