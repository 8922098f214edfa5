// Server-sent events onto raw responses: back-pressure, a comment line while nothing comes so that proxies
// keep the connection, and no work per event but the write. One timer watches over all streams: a thousand
// open ones are mostly silent.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';

export interface EventStream {
  /** Sends one `data:` event; resolves when more may be written. */
  send(data: string): Promise<void> | undefined;
  /** Sends whole events as they are; every character is one byte. */
  pass(events: string): Promise<void> | undefined;
  end(): void;
}

export interface EventStreams {
  /** Takes the response over from Fastify. Call it only once the first event exists. */
  open(reply: FastifyReply, signal: AbortSignal): EventStream;
}

interface Watched {
  readonly raw: ServerResponse;
  /** Looks since something was written. */
  quiet: number;
}

const lookMs = 1000;
const pingAfterLooks = 15;

export function createEventStreams(): EventStreams {
  const open = new Set<Watched>();
  let timer: NodeJS.Timeout | null = null;

  function look(): void {
    for (const stream of open) {
      if (++stream.quiet < pingAfterLooks) continue;
      stream.quiet = 0;
      if (!stream.raw.writableNeedDrain) stream.raw.write(': ping\n\n');
    }
  }

  function forget(stream: Watched): void {
    open.delete(stream);
    if (open.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  return {
    open(reply, signal) {
      reply.hijack();
      const { raw } = reply;
      raw.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache',
        'x-accel-buffering': 'no',
      });
      const stream: Watched = { raw, quiet: 0 };
      open.add(stream);
      timer ??= setInterval(look, lookMs).unref();
      raw.once('close', () => forget(stream));

      function write(text: string, encoding: BufferEncoding): Promise<void> | undefined {
        stream.quiet = 0;
        if (raw.write(text, encoding) || signal.aborted) return undefined;
        return drained(raw, signal);
      }

      return {
        send: (data) => write(`data: ${data}\n\n`, 'utf8'),
        pass: (events) => write(events, 'latin1'),
        end() {
          forget(stream);
          raw.end();
        },
      };
    },
  };
}

/** Also when the client leaves: whoever writes sees that by the signal. */
async function drained(raw: ServerResponse, signal: AbortSignal): Promise<void> {
  await once(raw, 'drain', { signal }).catch(() => {});
}
