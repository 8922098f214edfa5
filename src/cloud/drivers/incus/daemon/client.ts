// A client for the daemon's REST API. Every response is bounded in size and time, operations are awaited until they
// have ended, and every failure is a DriverError.

import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type Dispatcher, request as send, WebSocket } from 'undici';
import { DriverError } from '#cloud/drivers/driver.ts';
import { readBounded } from '#lib/async/read-bounded.ts';
import { DaemonError, parseResponse, toDaemonError } from './daemon-response.ts';
import { type Endpoint, type EndpointRoute, openRoute } from './endpoint.ts';

export interface DaemonClient {
  /** Returns the response's `metadata`. */
  get<Metadata>(path: string, query?: Query): Promise<Metadata>;
  /** Like `get`, but returns undefined for 404. */
  find<Metadata>(path: string, query?: Query): Promise<Metadata | undefined>;
  /** Like `get`, with the ETag for `if-match`: a write then fails with 412 if the value has changed. */
  tagged<Metadata>(path: string): Promise<{ readonly value: Metadata; readonly tag: string }>;
  /** Sends a request and waits for its operation, if the daemon starts one. */
  run(method: WriteMethod, path: string, options?: RequestOptions): Promise<Operation>;
  /** Returns the last `maxBytes` of the raw body; undefined for 404. */
  bytes(path: string, maxBytes: number): Promise<Buffer | undefined>;
  wait(operationId: string): Promise<Operation>;
  webSocket(path: string, query?: Query): WebSocket;
  /** Also gives access to the socket, which can be paused; the standard WebSocket interface can't. */
  pausableWebSocket(path: string, query?: Query): { socket: WebSocket; connection: () => Socket };
  /** Sets the endpoint's other addresses, which are tried when it is unreachable. */
  alsoAt(urls: readonly string[]): void;
  close(): Promise<void>;
}

export type WriteMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type Query = Readonly<Record<string, string | null | undefined>>;

export interface RequestOptions {
  readonly query?: Query;
  /** An object is sent as JSON; bytes are sent as is. */
  readonly body?: object | Buffer | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long to wait for the operation. Default: ten minutes. */
  readonly waitMs?: number;
  /** Returns as soon as the operation has started. */
  readonly returnWhenStarted?: boolean;
}

export interface Operation {
  readonly id: string;
  readonly status_code: number;
  readonly err: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly resources?: Readonly<Record<string, readonly string[] | null>> | null;
}

interface Connection {
  readonly url: string;
  readonly route: EndpointRoute;
  readonly project: string;
}

const maxResponseBytes = 64 * 1024 * 1024;
const waitRoundSeconds = 20;
const defaultWaitMs = 10 * 60_000;

export function createDaemonClient(endpoint: Endpoint, project: string): DaemonClient {
  const route = openRoute(endpoint);
  const connection: Connection = { url: endpoint.url, route, project };
  return {
    wait: (operationId) => wait(connection, operationId),
    get: async <Metadata>(path: string, query?: Query) =>
      (await call(connection, 'GET', path, { query })).metadata as Metadata,
    find: async <Metadata>(path: string, query?: Query) => {
      try {
        return (await call(connection, 'GET', path, { query })).metadata as Metadata;
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    async tagged<Metadata>(path: string) {
      const { bytes, tag } = await exchange(connection, 'GET', path);
      return { value: parseResponse(bytes, `GET ${path}`).metadata as Metadata, tag };
    },
    async run(method, path, options = {}) {
      const { type, metadata } = await call(connection, method, path, options);
      const operation = metadata as Operation;
      if (type !== 'async' || options.returnWhenStarted) return operation;
      return wait(connection, operation.id, options.waitMs);
    },
    async bytes(path, maxBytes) {
      const { statusCode, bytes } = await exchange(connection, 'GET', path);
      if (statusCode === 404) return undefined;
      if (statusCode !== 200) throw toDaemonError(bytes, `GET ${path}`);
      return bytes.subarray(Math.max(0, bytes.length - maxBytes));
    },
    webSocket: (path, query) => openWebSocket(connection, path, query, route.agent),
    pausableWebSocket: (path, query) => openPausable(connection, path, query),
    alsoAt: route.alsoAt,
    close: () => route.agent.destroy(),
  };
}

function toUrl({ project }: Connection, origin: string, path: string, query: Query = {}): string {
  const url = new URL(path, origin);
  for (const [name, value] of Object.entries({ project, ...query })) {
    if (value !== null && value !== undefined) url.searchParams.set(name, value);
  }
  return url.href;
}

async function exchange(
  connection: Connection,
  method: Dispatcher.HttpMethod,
  path: string,
  { body, headers: extraHeaders, query }: RequestOptions = {},
) {
  const { route } = connection;
  const raw = Buffer.isBuffer(body) || body instanceof Readable;
  // The files API stores an empty file for any other type.
  const type = raw ? 'application/octet-stream' : 'application/json';
  try {
    const response = await send(toUrl(connection, route.httpOrigin, path, query), {
      method,
      dispatcher: route.agent,
      headers: { 'content-type': type, ...extraHeaders },
      body: raw ? (body as Buffer | Readable) : body && JSON.stringify(body),
    });
    const bytes = await readResponse(response.body);
    return { statusCode: response.statusCode, tag: `${response.headers.etag ?? ''}`, bytes };
  } catch (error) {
    if (error instanceof DriverError) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = message || code || String(error);
    throw new DriverError('unavailable', `${connection.url}: ${reason}`, error);
  }
}

async function call(
  connection: Connection,
  method: Dispatcher.HttpMethod,
  path: string,
  options?: RequestOptions,
) {
  const { bytes } = await exchange(connection, method, path, options);
  return parseResponse(bytes, `${method} ${path}`);
}

async function wait(
  connection: Connection,
  operationId: string,
  waitMs = defaultWaitMs,
): Promise<Operation> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    // Built from the id: the daemon's URL may carry a query, and a `/wait` after it would be ignored.
    const path = `/1.0/operations/${operationId}/wait`;
    const query = { timeout: `${waitRoundSeconds}` };
    const { metadata } = await call(connection, 'GET', path, { query }).catch((error) => {
      if (!isNotFound(error)) throw error;
      // A restarted daemon has forgotten its operations.
      throw new DriverError('unavailable', 'The daemon lost the operation; it will be retried.');
    });
    const operation = metadata as Operation;
    // The HTTP status is 200 even if the operation failed.
    if (operation.status_code >= 400) throw new DaemonError(operation.status_code, operation.err);
    if (operation.status_code >= 200) return operation;
    if (performance.now() > deadline) {
      throw new DriverError('unavailable', `The daemon did not finish within ${waitMs} ms.`);
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof DaemonError && error.code === 404;
}

function openWebSocket(
  connection: Connection,
  path: string,
  query: Query | undefined,
  dispatcher: Dispatcher,
): WebSocket {
  const url = toUrl(connection, connection.route.webSocketOrigin, path, query);
  return new WebSocket(url, { dispatcher });
}

function openPausable(connection: Connection, path: string, query?: Query) {
  let raw: Socket | undefined;
  const dispatcher = connection.route.dedicated((socket) => {
    raw = socket;
  });
  const socket = openWebSocket(connection, path, query, dispatcher);
  socket.addEventListener('close', () => void dispatcher.destroy());
  return {
    socket,
    connection() {
      if (!raw) throw new DriverError('unavailable', 'The websocket is not connected yet.');
      return raw;
    },
  };
}

async function readResponse(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const bytes = await readBounded(body, maxResponseBytes);
  if (bytes !== null) return bytes;
  const message = `The daemon's response exceeds ${maxResponseBytes} bytes.`;
  throw new DriverError('unavailable', message);
}
