// Server-sent events: back-pressure, a comment line while nothing comes so that proxies
// keep the connection, and one write for all that is ready at the same moment. One timer watches over all
// streams: a thousand open ones are mostly silent.

import type { ServerResponse } from 'node:http';
import { toBytes } from '#lib/memory/byte-string.ts';
import { type Indexed, IndexedList, notListed } from '#lib/memory/indexed-list.ts';
import type { Cancellation } from './client-disconnect.ts';
import type { HeaderList } from './header-list.ts';

export interface EventStream {
  /** Sends one `data:` event; resolves when more may be written. */
  send(data: string): Promise<void> | undefined;
  /** Sends whole events as they are; every character is one byte. */
  pass(events: string): Promise<void> | undefined;
  end(): void;
}

export interface EventStreams {
  /** Begins the answer. Call it only once the first event exists. */
  open(response: ServerResponse, headers: HeaderList, signal: Cancellation): EventStream;
}

/** Names and values in turn. */
export const eventStreamHeaders: Readonly<HeaderList> = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache',
  'x-accel-buffering',
  'no',
];

const lookMs = 1000;
const pingAfterLooks = 15;
/** Nobody who still reads takes so long for what may wait here; who does not keeps a backend's place. */
const mostFullLooks = 300;

export function createEventStreams(): EventStreams {
  const open = new IndexedList<OutgoingEvents>();
  let timer: NodeJS.Timeout | null = null;

  function look(): void {
    for (const stream of open.list()) {
      if (stream.isOver()) open.delete(stream);
      else if (stream.isStuck()) stream.cut();
      else if (++stream.quiet >= pingAfterLooks) stream.ping();
    }
    if (open.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  return {
    open(response, headers, signal) {
      response.writeHead(200, headers);
      const stream = new OutgoingEvents(response, signal, open);
      open.add(stream);
      timer ??= setInterval(look, lookMs).unref();
      return stream;
    },
  };
}

class OutgoingEvents implements EventStream, Indexed {
  index = notListed;
  /** Looks since something was written. */
  quiet = 0;
  readonly #response: ServerResponse;
  readonly #isChunked: boolean;
  readonly #signal: Cancellation;
  readonly #open: IndexedList<OutgoingEvents>;
  /** Looks at which it was full, since it last had room. */
  #fullLooks = 0;
  #ready = '';
  #willWrite = false;
  #isEnding = false;

  constructor(response: ServerResponse, signal: Cancellation, open: IndexedList<OutgoingEvents>) {
    this.#response = response;
    // False for a client of HTTP/1.0. Chunks are framed here, because Node makes four writes of each.
    this.#isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
    this.#signal = signal;
    this.#open = open;
  }

  send(data: string): Promise<void> | undefined {
    return this.pass(`data: ${toBytes(data)}\n\n`);
  }

  pass(events: string): Promise<void> | undefined {
    // Its end may wait long for a slow reader, and a ping would be one more.
    if (this.#isEnding) return undefined;
    this.quiet = 0;
    this.#ready += events;
    this.#writeSoon();
    const response = this.#response;
    if (!response.writableNeedDrain || this.#signal.aborted) return undefined;
    return new Promise((resolve) => {
      const goOn = () => {
        response.off('drain', goOn).off('close', goOn);
        this.#fullLooks = 0;
        resolve();
      };
      response.on('drain', goOn).on('close', goOn);
    });
  }

  ping(): void {
    if (this.#response.writableNeedDrain) this.quiet = 0;
    else this.pass(': ping\n\n');
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#open.delete(this);
    this.#writeSoon();
  }

  /** The client has left. */
  isOver(): boolean {
    return this.#response.destroyed;
  }

  isStuck(): boolean {
    this.#fullLooks = this.#response.writableNeedDrain ? this.#fullLooks + 1 : 0;
    return this.#fullLooks > mostFullLooks;
  }

  cut(): void {
    this.#response.destroy();
  }

  #writeSoon(): void {
    if (this.#willWrite) return;
    this.#willWrite = true;
    // When all that can be done now is done: the last events and the end then leave together.
    process.nextTick(write, this);
  }

  write(): void {
    this.#willWrite = false;
    const block = this.#isChunked ? toChunk(this.#ready) : this.#ready;
    this.#ready = '';
    if (this.#response.destroyed) return;
    if (this.#isEnding) this.#response.end(this.#isChunked ? block + lastChunk : block, 'latin1');
    else this.#response.write(block, 'latin1');
  }
}

/** An empty chunk would end the response. */
const toChunk = (block: string) =>
  block === '' ? '' : `${block.length.toString(16)}\r\n${block}\r\n`;
const lastChunk = '0\r\n\r\n';

const write = (stream: OutgoingEvents) => stream.write();
