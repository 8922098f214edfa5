// One upstream server as a pool of connections, with a bound on everything: the size of headers, the time
// to connect, to the first byte and between bytes. One timer watches all requests, so that none needs its own.

import type { IncomingHttpHeaders } from 'node:http';
import type { Handler, Link, OutgoingRequest } from '#http/client/connection.ts';
import { createPool, type Pool } from '#http/client/pool.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import { type Indexed, IndexedList, notListed } from '#lib/memory/indexed-list.ts';
import { toConnectionFailure, tooSlow, unavailable } from './failures.ts';

export interface ConnectionOptions {
  readonly url: string;
  readonly apiKey: string | null;
  readonly headers: Record<string, string>;
  readonly connections: number | null;
  readonly timeouts: { connectMs: number; firstByteMs: number; idleMs: number };
  /** Others found that it does not answer. */
  readonly isDown?: () => boolean;
}

/** Who takes an answer as it comes. Bytes that were received count as progress only when it says so. */
export interface Receiver {
  /** The request is being written to a connection; again if that one turns out to be stale. */
  sent?(): void;
  started(exchange: Exchange, status: number, headers: IncomingHttpHeaders): void;
  /** The bytes are good until this returns. */
  received(exchange: Exchange, bytes: Buffer): void;
  ended(): void;
  /** Exactly one of `ended` and `failed` is called, once. */
  failed(error: unknown): void;
}

export interface Send {
  method: 'GET' | 'POST';
  /** Below the base URL; `root` below its origin. */
  path: string;
  root?: boolean;
  body?: string;
  /** Of this request alone. */
  headers?: Readonly<Record<string, string>> | undefined;
  signal: Cancellation;
}

export interface Connection {
  send(what: Send, receiver: Receiver): void;
  /** Running requests fail. Idempotent. */
  close(): Promise<void>;
}

/** A server that is shut down may keep its connections and say nothing more (vLLM). */
const silentMs = 5000;
const maxHeaderBytes = 16 * 1024;
/** Nothing that makes progress is cut off before, and nothing goes on for longer. */
const longestMs = 6 * 60 * 60_000;
/** Connections that were kept from earlier are often closed together. */
const mostRestarts = 3;
/** Who breaks off later than this was at work on the request, and may be broken by it. */
const restartWithinMs = 1000;

export function createConnection(options: ConnectionOptions): Connection {
  const base = new URL(options.url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const { connectMs, firstByteMs, idleMs } = options.timeouts;
  const pool = createPool({
    url: base,
    headers: toHeaders(options),
    connections: options.connections,
    connectMs,
    maxHeadBytes: maxHeaderBytes,
  });
  const running = new IndexedList<Exchange>();
  const shared: Shared = { pool, running, firstByteMs, idleMs };
  const everyMs = Math.min(Math.max(Math.min(firstByteMs, idleMs) / 4, 10), 1000);
  const watch = setInterval(() => {
    const now = performance.now();
    const isDown = options.isDown?.() === true;
    for (const exchange of running.list())
      if (now > exchange.deadlineMs || (isDown && exchange.isSilent(now))) exchange.giveUp();
  }, everyMs).unref();

  return {
    send({ method, path, root = false, body, headers, signal }, receiver) {
      const request: OutgoingRequest = {
        method,
        path: root ? path : prefix + path,
        body: body ?? null,
        headers,
      };
      pool.send(request, new Exchange(request, receiver, signal, shared));
    },
    async close() {
      clearInterval(watch);
      pool.destroy();
    },
  };
}

/** What all exchanges of one connection have in common. */
interface Shared {
  readonly pool: Pool;
  readonly running: IndexedList<Exchange>;
  readonly firstByteMs: number;
  readonly idleMs: number;
}

/** One request and its answer. */
export class Exchange implements Handler, Indexed {
  index = notListed;
  /** On the clock of `performance.now`. */
  deadlineMs: number;
  readonly #receiver: Receiver;
  readonly #signal: Cancellation;
  readonly #shared: Shared;
  readonly #begunMs: number;
  readonly #lastMs: number;
  readonly #onAbort = () => this.stop(this.#signal.reason);
  /** Kept until it is answered: it may be large. */
  #request: OutgoingRequest | null;
  #link: Link | null = null;
  #restarts = 0;
  #hasStarted = false;
  #isOver = false;

  constructor(request: OutgoingRequest, receiver: Receiver, signal: Cancellation, shared: Shared) {
    const now = performance.now();
    this.#request = request;
    this.#receiver = receiver;
    this.#signal = signal;
    this.#shared = shared;
    this.#begunMs = now;
    this.#lastMs = now + longestMs;
    this.deadlineMs = now + shared.firstByteMs;
    shared.running.add(this);
    signal.addEventListener('abort', this.#onAbort);
  }

  sent(link: Link): void {
    this.#link = link;
    this.#receiver.sent?.();
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#request = null;
    const coding = headers['content-encoding'];
    // None was asked for.
    if (coding !== undefined && /[^\s,]/.test(coding.replaceAll('identity', '')))
      this.stop(unavailable('compressed its answer unasked'));
    else this.#receiver.started(this, status, headers);
  }

  body(bytes: Buffer): void {
    if (!this.#isOver) this.#receiver.received(this, bytes);
  }

  end(): void {
    if (this.#finish()) this.#receiver.ended();
  }

  failed(error: Error, isStale: boolean): void {
    this.#link = null;
    // A server may close a quiet connection at the moment it is used again, and has then read nothing.
    if (isStale && this.#request !== null && this.#mayRestart()) {
      this.#restarts++;
      this.#shared.pool.send(this.#request, this);
    } else if (this.#finish()) this.#receiver.failed(toConnectionFailure(error));
  }

  /** The next part may take its time again. */
  progress(): void {
    this.#hasStarted = true;
    this.deadlineMs = Math.min(performance.now() + this.#shared.idleMs, this.#lastMs);
  }

  /** In the middle of its answer, which is not held back by us. */
  isSilent(now: number): boolean {
    return this.#hasStarted && now - (this.deadlineMs - this.#shared.idleMs) > silentMs;
  }

  /** Who waits for us is not too slow. */
  pause(): void {
    this.#link?.pause();
    this.deadlineMs = this.#lastMs;
  }

  resume(): void {
    if (this.#isOver) return;
    this.progress();
    this.#link?.resume();
  }

  giveUp(): void {
    const what = this.#hasStarted ? 'stopped in the middle of its answer' : 'did not begin in time';
    this.stop(tooSlow(what));
  }

  /** Ends the request on our side, and with it the server's work. */
  stop(reason: unknown): void {
    if (!this.#finish()) return;
    if (this.#link === null) this.#shared.pool.forget(this);
    else this.#link.abort();
    this.#receiver.failed(reason);
  }

  #mayRestart(): boolean {
    if (this.#isOver || this.#restarts >= mostRestarts) return false;
    return performance.now() - this.#begunMs < restartWithinMs;
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#shared.running.delete(this);
    this.#signal.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

function toHeaders({ apiKey, headers }: ConnectionOptions): Record<string, string> {
  const all: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': 'millrace',
    'accept-encoding': 'identity',
  };
  // Names are the same in any case, and none is to be sent twice.
  for (const [name, value] of Object.entries(headers)) all[name.toLowerCase()] = value;
  if (apiKey !== null) all.authorization = `Bearer ${apiKey}`;
  return all;
}
