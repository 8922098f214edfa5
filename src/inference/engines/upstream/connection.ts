// One upstream server as a pool of connections, with a bound on everything: the size of headers, the time
// to connect, to the first byte and between bytes. One timer watches all requests, so that none needs its own.

import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import Pool from 'undici/lib/dispatcher/pool.js';
import type { Cancellation } from '../../../lib/client-gone.ts';
import { type Member, noSeat, Roster } from '../../../lib/roster.ts';
import { isStale, toConnectionFailure, tooSlow, unavailable } from './failures.ts';

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
  started(exchange: Exchange, status: number, headers: IncomingHttpHeaders): void;
  received(exchange: Exchange, chunk: Buffer): void;
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
  const pool = new Pool(base.origin, {
    connections: options.connections,
    connect: { timeout: connectMs },
    allowH2: false,
    maxHeaderSize: maxHeaderBytes,
    // Watched here instead: a stream's first byte and its later ones have different limits.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const headers = toHeaderList(options);
  const running = new Roster<Exchange>();
  const everyMs = Math.min(Math.max(Math.min(firstByteMs, idleMs) / 4, 10), 1000);
  const watch = setInterval(() => {
    const now = performance.now();
    const isDown = options.isDown?.() === true;
    for (const exchange of running.list())
      if (now > exchange.deadlineMs || (isDown && exchange.isSilent(now))) exchange.giveUp();
  }, everyMs).unref();

  return {
    send({ method, path, root = false, body, headers: own, signal }, receiver) {
      const request: Dispatcher.DispatchOptions = {
        method,
        path: `${root ? '' : prefix}${path}`,
        headers: own === undefined ? headers : [...headers, ...Object.entries(own).flat()],
        body: body ?? null,
      };
      const again = () => pool.dispatch(request, exchange);
      const exchange = new Exchange(receiver, signal, running, { firstByteMs, idleMs, again });
      pool.dispatch(request, exchange);
    },
    async close() {
      clearInterval(watch);
      await pool.destroy();
    },
  };
}

/** One request and its answer. */
export class Exchange implements Dispatcher.DispatchHandler, Member {
  seat = noSeat;
  /** On the clock of `performance.now`. */
  deadlineMs: number;
  readonly #receiver: Receiver;
  readonly #signal: Cancellation;
  readonly #running: Roster<Exchange>;
  readonly #idleMs: number;
  readonly #begunMs: number;
  readonly #lastMs: number;
  readonly #onAbort = () => this.stop(this.#signal.reason);
  readonly #again: () => void;
  #controller: Dispatcher.DispatchController | null = null;
  #isAnswered = false;
  #restarts = 0;
  #hasStarted = false;
  #isOver = false;

  constructor(
    receiver: Receiver,
    signal: Cancellation,
    running: Roster<Exchange>,
    { firstByteMs, idleMs, again }: { firstByteMs: number; idleMs: number; again: () => void },
  ) {
    const now = performance.now();
    this.#receiver = receiver;
    this.#signal = signal;
    this.#running = running;
    this.#idleMs = idleMs;
    this.#again = again;
    this.#begunMs = now;
    this.#lastMs = now + longestMs;
    this.deadlineMs = now + firstByteMs;
    running.add(this);
    signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It waited for a connection while its client left.
    if (this.#isOver) controller.abort(new Error('given up'));
    else this.#controller = controller;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // Each is a piece of the packet it came in, which would be kept as long as the answer takes.
    controller.rawHeaders = null;
    if (this.#isOver || status < 200) return;
    this.#isAnswered = true;
    // None was asked for.
    if (/[^\s,]/.test((headers['content-encoding'] ?? '').replaceAll('identity', '')))
      this.stop(unavailable('compressed its answer unasked'));
    else this.#receiver.started(this, status, headers);
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (!this.#isOver) this.#receiver.received(this, chunk);
  }

  onResponseEnd(): void {
    if (this.#finish()) this.#receiver.ended();
  }

  onResponseError(_: unknown, error: Error): void {
    // A server may close a quiet connection at the moment it is used again, and has then read nothing.
    if (this.#mayRestart() && isStale(error)) {
      this.#restarts++;
      this.#controller = null;
      this.#again();
      return;
    }
    if (this.#finish()) this.#receiver.failed(toConnectionFailure(error));
  }

  /** The next part may take its time again. */
  progress(): void {
    this.#hasStarted = true;
    this.deadlineMs = Math.min(performance.now() + this.#idleMs, this.#lastMs);
  }

  /** In the middle of its answer, which is not held back by us. */
  isSilent(now: number): boolean {
    return this.#hasStarted && now - (this.deadlineMs - this.#idleMs) > silentMs;
  }

  /** Who waits for us is not too slow. */
  pause(): void {
    this.#controller?.pause();
    this.deadlineMs = this.#lastMs;
  }

  resume(): void {
    if (this.#isOver) return;
    this.progress();
    this.#controller?.resume();
  }

  giveUp(): void {
    const what = this.#hasStarted ? 'stopped in the middle of its answer' : 'did not begin in time';
    this.stop(tooSlow(what));
  }

  /** Ends the request on our side, and with it the server's work. */
  stop(reason: unknown): void {
    if (!this.#finish()) return;
    this.#controller?.abort(reason instanceof Error ? reason : new Error('stopped'));
    this.#receiver.failed(reason);
  }

  #mayRestart(): boolean {
    if (this.#isOver || this.#isAnswered || this.#restarts >= mostRestarts) return false;
    return performance.now() - this.#begunMs < restartWithinMs;
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#running.delete(this);
    this.#signal.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

function toHeaderList({ apiKey, headers }: ConnectionOptions): string[] {
  const list: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': 'millrace',
    'accept-encoding': 'identity',
  };
  // Names are the same in any case, and none is to be sent twice.
  for (const [name, value] of Object.entries(headers)) list[name.toLowerCase()] = value;
  if (apiKey !== null) list.authorization = `Bearer ${apiKey}`;
  return Object.entries(list).flat();
}
