// Server-sent events: backpressure, a comment or event while the stream is idle so that proxies keep the connection,
// and one write for all events that are ready at the same moment. One timer serves all streams, since of a
// thousand open streams most are idle.

import type { ServerResponse } from 'node:http';
import { toBytes } from '#lib/memory/byte-string.ts';
import { type Indexed, IndexedList, notListed } from '#lib/memory/indexed-list.ts';
import type { Cancellation } from './client-disconnect.ts';
import { probed } from './half-closed.ts';
import type { HeaderList } from './response-headers.ts';

export interface EventStream {
  /** Sends one `data:` event. Resolves when more may be written; undefined if that is at once. */
  send(data: string): Promise<void> | undefined;
  /** Sends whole events as a byte string, unchanged. */
  pass(events: string): Promise<void> | undefined;
  end(): void;
}

/** Returns what is sent while a stream is idle, as a byte string. */
export type KeepAlive = () => string;

export interface StreamOptions {
  readonly signal: Cancellation;
  /** A comment line if absent. */
  readonly keepAlive?: KeepAlive | undefined;
}

export interface EventStreams {
  /** Sends the response's head. */
  open(response: ServerResponse, headers: HeaderList, options: StreamOptions): EventStream;
}

/** Alternating names and values. They replace those of every response. */
export const eventStreamHeaders: Readonly<HeaderList> = [
  'content-type',
  'text/event-stream; charset=utf-8',
  // The API's contract has the first word, and no response may stay in a cache.
  'cache-control',
  'no-cache, no-store',
  'x-accel-buffering',
  'no',
];

const maxCheckMs = 1000;
const defaultKeepAliveMs = 15_000;
/** A socket that has not drained for five minutes is dead. Closing it frees the backend's slot. */
const maxFullMs = 300_000;

/** A stream that was silent for `keepAliveMs` is kept alive. */
export function createEventStreams(keepAliveMs = defaultKeepAliveMs): EventStreams {
  const checkMs = Math.min(maxCheckMs, keepAliveMs);
  const pingAfterChecks = Math.ceil(keepAliveMs / checkMs);
  const maxFullChecks = maxFullMs / checkMs;
  const open = new IndexedList<OutgoingEvents>();
  let timer: NodeJS.Timeout | null = null;

  function check(): void {
    for (const stream of open.list()) {
      if (stream.isClosed()) open.delete(stream);
      else if (stream.countFull() > maxFullChecks) stream.cut();
      else if (++stream.idleChecks >= pingAfterChecks) stream.ping();
    }
    if (open.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  }

  return {
    open(response, headers, options) {
      response.writeHead(200, headers);
      const stream = new OutgoingEvents(response, options, open);
      open.add(stream);
      timer ??= setInterval(check, checkMs).unref();
      return stream;
    },
  };
}

class OutgoingEvents implements EventStream, Indexed {
  index = notListed;
  /** Checks since something was written. */
  idleChecks = 0;
  readonly #response: ServerResponse;
  readonly #isChunked: boolean;
  readonly #signal: Cancellation;
  readonly #keepAlive: KeepAlive;
  readonly #open: IndexedList<OutgoingEvents>;
  /** Consecutive checks at which the socket's buffer was full. */
  #fullChecks = 0;
  #ready = '';
  #willWrite = false;
  #isEnding = false;

  constructor(
    response: ServerResponse,
    { signal, keepAlive = toComment }: StreamOptions,
    open: IndexedList<OutgoingEvents>,
  ) {
    this.#response = response;
    // False for an HTTP/1.0 client. Chunks are framed here, because Node makes four writes for each.
    this.#isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
    this.#signal = signal;
    this.#keepAlive = keepAlive;
    this.#open = open;
    response.on(probed, () => this.ping());
  }

  send(data: string): Promise<void> | undefined {
    return this.pass(`data: ${toBytes(data)}\n\n`);
  }

  pass(events: string): Promise<void> | undefined {
    // The end may have to wait for a slow reader. Nothing may be written after it.
    if (this.#isEnding) return undefined;
    this.idleChecks = 0;
    this.#ready += events;
    this.#writeSoon();
    const response = this.#response;
    if (!response.writableNeedDrain || this.#signal.aborted) return undefined;
    return new Promise((resolve) => {
      const proceed = () => {
        response.off('drain', proceed).off('close', proceed);
        this.#fullChecks = 0;
        resolve();
      };
      response.on('drain', proceed).on('close', proceed);
    });
  }

  ping(): void {
    if (this.#response.writableNeedDrain) this.idleChecks = 0;
    else this.pass(this.#keepAlive());
  }

  end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#open.delete(this);
    this.#writeSoon();
  }

  /** True once the client has left. */
  isClosed(): boolean {
    return this.#response.destroyed;
  }

  /** Call once per check. Returns the checks since the socket's buffer was last drained. */
  countFull(): number {
    this.#fullChecks = this.#response.writableNeedDrain ? this.#fullChecks + 1 : 0;
    return this.#fullChecks;
  }

  cut(): void {
    this.#response.destroy();
  }

  #writeSoon(): void {
    if (this.#willWrite) return;
    this.#willWrite = true;
    // Written at the end of this tick, so that the last events and the end leave in one write.
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

const toComment: KeepAlive = () => ': ping\n\n';

/** An empty chunk would end the response. */
const toChunk = (block: string) =>
  block === '' ? '' : `${block.length.toString(16)}\r\n${block}\r\n`;
const lastChunk = '0\r\n\r\n';

const write = (stream: OutgoingEvents) => stream.write();
