// The HTTP client of one upstream server: a pool of connections, with a timeout for connecting, for the first byte
// and between bytes. One interval checks the deadlines of all requests, so that none needs a timer of its own.

import type { OutgoingRequest } from '#http/client/client-connection.ts';
import { Pool } from '#http/client/pool.ts';
import type { ResponseHandler } from '#http/client/response-handler.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import { IndexedList } from '#lib/memory/indexed-list.ts';
import { UpstreamRequest, type UpstreamRequestContext } from './upstream-request.ts';

export interface UpstreamClientOptions {
  readonly url: string;
  readonly apiKey: string | null;
  readonly headers: Record<string, string>;
  /** Maximum connections; null for one per request. */
  readonly connections: number | null;
  readonly timeouts: { connectMs: number; firstByteMs: number; idleMs: number };
  /** True if health checks find the server down. */
  readonly isDown?: () => boolean;
}

export interface SendOptions {
  method: 'GET' | 'POST';
  /** Relative to the base URL, or to its origin if `root` is set. */
  path: string;
  root?: boolean;
  body?: string;
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
        path: root ? path : prefix + path,
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
