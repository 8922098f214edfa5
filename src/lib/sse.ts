// Server-sent events onto raw responses: back-pressure, a comment line while nothing comes so that proxies
// keep the connection, and one write for all that is ready at the same moment. One timer watches over all
// streams: a thousand open ones are mostly silent.

import type { ServerResponse } from 'node:http';
import { toBytes } from './byte-string.ts';
import type { Cancellation } from './client-gone.ts';
import type { HeaderList } from './header-list.ts';
import { type Member, noSeat, Roster } from './roster.ts';

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

export function createEventStreams(): EventStreams {
  const open = new Roster<OutgoingEvents>();
  let timer: NodeJS.Timeout | null = null;

  function look(): void {
    for (const stream of open.list()) {
      if (stream.isOver()) open.delete(stream);
      else if (++stream.quiet >= pingAfterLooks) stream.ping();
    }
    if (open.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  return {
    open(response, headers, signal) {
      response.writeHead(200, headers);
      joinHeader(response);
      const stream = new OutgoingEvents(response, signal, open);
      open.add(stream);
      timer ??= setInterval(look, lookMs).unref();
      return stream;
    },
  };
}

/**
 * Node keeps the text of the headers as the eighty pieces it was put together from, for as long as the answer
 * takes. Looking into it makes one piece of them.
 */
function joinHeader(response: ServerResponse): void {
  (response as { _header?: string })._header?.charCodeAt(0);
}

class OutgoingEvents implements EventStream, Member {
  seat = noSeat;
  /** Looks since something was written. */
  quiet = 0;
  readonly #response: ServerResponse;
  readonly #signal: Cancellation;
  readonly #open: Roster<OutgoingEvents>;
  /** The client is told the length of each block, as HTTP/1.1 has it. */
  readonly #isFramed: boolean;
  #ready = '';
  #willWrite = false;
  #isEnding = false;

  constructor(response: ServerResponse, signal: Cancellation, open: Roster<OutgoingEvents>) {
    this.#response = response;
    this.#signal = signal;
    this.#open = open;
    // Framed here instead of by Node, which would make four writes of each: a fifth of what a stream costs.
    this.#isFramed = response.chunkedEncoding;
    response.chunkedEncoding = false;
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
    if (!this.#response.writableNeedDrain || this.#signal.aborted) return undefined;
    return drained(this.#response);
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

  #writeSoon(): void {
    if (this.#willWrite) return;
    this.#willWrite = true;
    // When all that can be done now is done: the last events and the end then leave together.
    process.nextTick(write, this);
  }

  write(): void {
    this.#willWrite = false;
    const block = this.#toBlock();
    this.#ready = '';
    if (this.#response.destroyed) return;
    if (this.#isEnding) this.#response.end(this.#isFramed ? `${block}0\r\n\r\n` : block, 'latin1');
    else this.#response.write(block, 'latin1');
  }

  #toBlock(): string {
    const { length } = this.#ready;
    if (!this.#isFramed || length === 0) return this.#ready;
    return `${length.toString(16)}\r\n${this.#ready}\r\n`;
  }
}

const write = (stream: OutgoingEvents) => stream.write();

/** Also when the client leaves: whoever writes sees that by the signal. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    function go(): void {
      response.off('drain', go).off('close', go);
      resolve();
    }
    response.on('drain', go).on('close', go);
  });
}
