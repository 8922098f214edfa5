// The HTTP client of one upstream server: a pool of connections, with a timeout for connecting, for the first byte
// and between bytes. One interval checks the deadlines of all requests, so that none needs a timer of its own.

import type { IncomingHttpHeaders } from 'node:http';
import type {
  ClientConnection,
  OutgoingBody,
  OutgoingRequest,
} from '#http/client/client-connection.ts';
import { Pool } from '#http/client/pool.ts';
import { HttpClientError, type ResponseHandler } from '#http/client/response-handler.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import { type Indexed, IndexedList, notListed } from '#lib/memory/indexed-list.ts';
import { toConnectionFailure, tooSlow, unavailable } from './failures.ts';

export interface UpstreamClientOptions {
  /** Base URL of the server's API, e.g. `http://host:8000/v1`. */
  readonly url: string;
  readonly apiKey: string | null;
  /** Sent with every request. */
  readonly headers: Record<string, string>;
  /** Maximum connections; null for one per request. */
  readonly connections: number | null;
  /**
   * `firstByteMs` is the time to the first byte, which a plain response sends only when it is complete. `idleMs` is
   * the time between two events. Comments are no events: a server that only sends pings is stuck.
   */
  readonly timeouts: { connectMs: number; firstByteMs: number; idleMs: number };
  /** True if health checks find the server down. */
  readonly isDown?: () => boolean;
}

export interface SendOptions {
  method: 'GET' | 'POST';
  /** Relative to the base URL. If `root` is set, beside its `/v1`, not below it. */
  path: string;
  root?: boolean;
  body?: OutgoingBody;
  /** Headers of this request, besides those of every request. */
  headers?: Readonly<Record<string, string>> | undefined;
  signal: Cancellation;
}

export interface UpstreamClient {
  /** The handler must call `progress` on the request, or it times out. */
  send(options: SendOptions, handler: ResponseHandler<UpstreamRequest>): void;
  /** Requests in progress fail. Idempotent. */
  close(): Promise<void>;
}

const maxHeadBytes = 16 * 1024;

export function createUpstreamClient(options: UpstreamClientOptions): UpstreamClient {
  const base = new URL(options.url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const rootPrefix = prefix.replace(/\/v1$/, '');
  const { connectMs, firstByteMs, idleMs } = options.timeouts;
  const pool = new Pool({
    url: base,
    headers: toHeaders(options),
    maxConnections: options.connections,
    connectMs,
    maxHeadBytes,
  });
  const running = new IndexedList<UpstreamRequest>();
  const context: UpstreamRequestContext = { pool, running, firstByteMs, idleMs };
  const checkIntervalMs = Math.min(Math.max(Math.min(firstByteMs, idleMs) / 4, 10), 1000);
  const deadlineCheck = setInterval(() => {
    const now = performance.now();
    const isDown = options.isDown?.() === true;
    for (const request of running.list())
      if (now > request.deadlineMs || (isDown && request.isSilent(now))) request.timeOut();
  }, checkIntervalMs).unref();

  return {
    send({ method, path, root = false, body, headers, signal }, handler) {
      const request: OutgoingRequest = {
        method,
        path: (root ? rootPrefix : prefix) + path,
        body: body ?? null,
        headers,
      };
      pool.send(request, new UpstreamRequest(request, handler, signal, context));
    },
    async close() {
      clearInterval(deadlineCheck);
      pool.close();
    },
  };
}

function toHeaders({ apiKey, headers }: UpstreamClientOptions): Record<string, string> {
  const all: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': 'millrace',
    'accept-encoding': 'identity',
  };
  // Header names are case-insensitive, and none may be sent twice.
  for (const [name, value] of Object.entries(headers)) all[name.toLowerCase()] = value;
  if (apiKey !== null) all.authorization = `Bearer ${apiKey}`;
  return all;
}

/** What all requests of one client share. */
export interface UpstreamRequestContext {
  readonly pool: Pool;
  readonly running: IndexedList<UpstreamRequest>;
  readonly firstByteMs: number;
  readonly idleMs: number;
}

/** How long a server that is reported down may be silent: vLLM keeps its connections open when it is shut down. */
const maxSilenceMs = 5000;
/** Maximum duration of a request, even if it makes progress. */
const maxRequestMs = 6 * 60 * 60_000;
/** Servers often close several idle connections at once. */
const maxRetries = 3;
/** A connection that breaks later was processing the request, which may have caused it, so it is not retried. */
const maxRetryAfterMs = 1000;

export class UpstreamRequest implements ResponseHandler<ClientConnection>, Indexed {
  index = notListed;
  /** The time at which the request fails, in `performance.now()` milliseconds. */
  deadlineMs: number;
  readonly #handler: ResponseHandler<UpstreamRequest>;
  readonly #signal: Cancellation;
  readonly #context: UpstreamRequestContext;
  readonly #startMs: number;
  readonly #lastMs: number;
  readonly #onAbort = () => this.stop(this.#signal.reason);
  /** Kept for a retry until the response starts; it may be large. */
  #request: OutgoingRequest | null;
  #connection: ClientConnection | null = null;
  #retries = 0;
  #hasProgress = false;
  #isPaused = false;
  #isOver = false;

  constructor(
    request: OutgoingRequest,
    handler: ResponseHandler<UpstreamRequest>,
    signal: Cancellation,
    context: UpstreamRequestContext,
  ) {
    const now = performance.now();
    this.#request = request;
    this.#handler = handler;
    this.#signal = signal;
    this.#context = context;
    this.#startMs = now;
    this.#lastMs = now + maxRequestMs;
    this.deadlineMs = now + context.firstByteMs;
    context.running.add(this);
    signal.addEventListener('abort', this.#onAbort);
  }

  onSent(connection: ClientConnection): void {
    this.#connection = connection;
    this.#handler.onSent(this);
  }

  onHead(status: number, headers: Readonly<IncomingHttpHeaders>): void {
    this.#request = null;
    const coding = headers['content-encoding'];
    // `accept-encoding: identity` was sent.
    if (coding !== undefined && /[^\s,]/.test(coding.replaceAll('identity', '')))
      this.stop(unavailable('compressed its response, which was not requested'));
    else this.#handler.onHead(status, headers);
  }

  onBody(bytes: Buffer): void {
    this.#handler.onBody(bytes);
  }

  onEnd(): void {
    if (this.#finish()) this.#handler.onEnd();
  }

  onError(error: unknown): void {
    this.#connection = null;
    const isStale = error instanceof HttpClientError && error.code === 'stale_connection';
    if (isStale && this.#request !== null && this.#mayRetry()) {
      this.#retries++;
      this.#context.pool.send(this.#request, this);
    } else if (this.#finish()) this.#handler.onError(toConnectionFailure(error));
  }

  /** Restarts the idle timeout. Received bytes count as progress only if the handler says so. */
  progress(): void {
    this.#hasProgress = true;
    if (!this.#isPaused)
      this.deadlineMs = Math.min(performance.now() + this.#context.idleMs, this.#lastMs);
  }

  /** True if the response has started, is not paused here, and has made no progress for a while. */
  isSilent(now: number): boolean {
    return this.#hasProgress && now - (this.deadlineMs - this.#context.idleMs) > maxSilenceMs;
  }

  /** Applies backpressure to the server. The idle timeout does not run meanwhile. */
  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#connection?.pause();
    this.deadlineMs = this.#lastMs;
  }

  resume(): void {
    if (this.#isOver || !this.#isPaused) return;
    this.#isPaused = false;
    this.progress();
    this.#connection?.resume();
  }

  timeOut(): void {
    this.stop(tooSlow(this.#hasProgress ? 'stopped in mid-response' : 'did not respond in time'));
  }

  /** Aborts the request, and with it the server's work. The handler gets `reason` as its error. */
  stop(reason: unknown): void {
    if (!this.#finish()) return;
    if (this.#connection === null) this.#context.pool.cancel(this);
    else this.#connection.abort();
    this.#handler.onError(reason);
  }

  #mayRetry(): boolean {
    if (this.#isOver || this.#retries >= maxRetries) return false;
    return performance.now() - this.#startMs < maxRetryAfterMs;
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#context.running.delete(this);
    this.#signal.removeEventListener('abort', this.#onAbort);
    return true;
  }
}
