// Server-sent events: back-pressure, a comment line while nothing comes so that proxies
// keep the connection, and one write for all that is ready at the same moment. One timer watches over all
// streams: a thousand open ones are mostly silent.

import { toBytes } from './byte-string.ts';
import type { Cancellation } from './client-gone.ts';
import type { HeaderList } from './header-list.ts';
import type { Reply } from './reply.ts';
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
  open(reply: Reply, headers: HeaderList, signal: Cancellation): EventStream;
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
  const open = new Roster<OutgoingEvents>();
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
    open(reply, headers, signal) {
      reply.begin(200, headers);
      const stream = new OutgoingEvents(reply, signal, open);
      open.add(stream);
      timer ??= setInterval(look, lookMs).unref();
      return stream;
    },
  };
}

class OutgoingEvents implements EventStream, Member {
  seat = noSeat;
  /** Looks since something was written. */
  quiet = 0;
  readonly #reply: Reply;
  readonly #signal: Cancellation;
  readonly #open: Roster<OutgoingEvents>;
  /** Looks at which it was full, since it last had room. */
  #fullLooks = 0;
  #ready = '';
  #willWrite = false;
  #isEnding = false;

  constructor(reply: Reply, signal: Cancellation, open: Roster<OutgoingEvents>) {
    this.#reply = reply;
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
    if (!this.#reply.isFull || this.#signal.aborted) return undefined;
    return new Promise((resolve) => {
      this.#reply.onRoom(() => {
        this.#fullLooks = 0;
        resolve();
      });
    });
  }

  ping(): void {
    if (this.#reply.isFull) this.quiet = 0;
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
    return this.#reply.isGone;
  }

  isStuck(): boolean {
    this.#fullLooks = this.#reply.isFull ? this.#fullLooks + 1 : 0;
    return this.#fullLooks > mostFullLooks;
  }

  cut(): void {
    this.#reply.cut();
  }

  #writeSoon(): void {
    if (this.#willWrite) return;
    this.#willWrite = true;
    // When all that can be done now is done: the last events and the end then leave together.
    process.nextTick(write, this);
  }

  write(): void {
    this.#willWrite = false;
    const block = this.#ready;
    this.#ready = '';
    if (this.#reply.isGone) return;
    if (this.#isEnding) this.#reply.end(block);
    else this.#reply.write(block);
  }
}

const write = (stream: OutgoingEvents) => stream.write();
