// A pool of keep-alive connections to one HTTP/1.1 server. README.md says what it supports and why it is not
// undici's.

import { connect, isIP, type OnReadOpts, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ClientConnection, type OutgoingRequest } from './client-connection.ts';
import { HttpClientError, type ResponseHandler } from './response-handler.ts';

export interface PoolOptions {
  /** Its scheme, host and port are used. */
  readonly url: URL;
  /** Sent with every request. Names must be in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Maximum connections; null for no limit. Further requests wait for a connection. */
  readonly maxConnections: number | null;
  /** Timeout of a new connection, including the TLS handshake. */
  readonly connectMs: number;
  /** Maximum bytes of a response's headers, and of its trailers. */
  readonly maxHeadBytes: number;
}

type PoolHandler = ResponseHandler<ClientConnection>;

interface WaitingRequest {
  readonly request: OutgoingRequest;
  readonly handler: PoolHandler;
}

const sweepIntervalMs = 1000;
/** The size of one read, which is as much as Node reads at once. */
const packetBytes = 64 * 1024;

export class Pool {
  readonly #options: PoolOptions;
  readonly #maxConnections: number;
  readonly #headText: string;
  readonly #connections = new Set<ClientConnection>();
  /** The connection used last is reused first, so that the others can expire. */
  readonly #idle: ClientConnection[] = [];
  readonly #waiting: WaitingRequest[] = [];
  readonly #packet = Buffer.allocUnsafeSlow(packetBytes);
  readonly #sweep: NodeJS.Timeout;
  #tlsSession: Buffer | undefined;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#maxConnections = options.maxConnections ?? Number.POSITIVE_INFINITY;
    this.#headText = toHeadText(options.url, options.headers);
    this.#sweep = setInterval(() => this.#closeExpired(), sweepIntervalMs).unref();
  }

  send(request: OutgoingRequest, handler: PoolHandler): void {
    if (this.#isClosed) {
      handler.onError(poolClosed());
      return;
    }
    const connection = this.#takeIdle();
    if (connection !== undefined) {
      connection.send(request, handler);
      return;
    }
    this.#waiting.push({ request, handler });
    if (this.#connections.size < this.#maxConnections) this.#open();
  }

  /** Removes a request that waits for a connection. Its handler is not called. */
  cancel(handler: PoolHandler): void {
    const at = this.#waiting.findIndex((one) => one.handler === handler);
    if (at !== -1) this.#waiting.splice(at, 1);
  }

  /** Closes all connections. Requests in progress fail with `closed`. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    for (const { handler } of this.#waiting.splice(0)) handler.onError(poolClosed());
    for (const connection of this.#connections) connection.close(poolClosed());
  }

  #open(): void {
    const { connectMs, maxHeadBytes } = this.#options;
    const connection = new ClientConnection({
      connect: (onread) => this.#connect(onread),
      packet: this.#packet,
      headText: this.#headText,
      connectMs,
      maxHeadBytes,
      onIdle: (idle) => this.#onIdle(idle),
      onClosed: (closed, error) => this.#onClosed(closed, error),
    });
    this.#connections.add(connection);
  }

  #connect(onread: OnReadOpts): Socket {
    const { url } = this.#options;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const isSecure = url.protocol === 'https:';
    const address: TcpNetConnectOpts = {
      host,
      port: Number(url.port) || (isSecure ? 443 : 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      onread,
    };
    if (!isSecure) return connect(address);
    const socket = connectTls({
      ...address,
      ...(isIP(host) === 0 && { servername: host }),
      ...(this.#tlsSession && { session: this.#tlsSession }),
      ALPNProtocols: ['http/1.1'],
    });
    return socket.on('session', (session: Buffer) => {
      this.#tlsSession = session;
    });
  }

  /** The connection was established, or its response has ended. */
  #onIdle(connection: ClientConnection): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next.request, next.handler);
  }

  #onClosed(connection: ClientConnection, error: Error | null): void {
    this.#connections.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    // A failed connection fails one waiting request. The others may still get a connection.
    if (error !== null) this.#waiting.shift()?.handler.onError(error);
    const isFull = this.#connections.size >= this.#maxConnections;
    if (this.#isClosed || this.#waiting.length === 0 || isFull) return;
    const connecting = [...this.#connections].filter(({ isConnecting }) => isConnecting).length;
    if (connecting < this.#waiting.length) this.#open();
  }

  #takeIdle(): ClientConnection | undefined {
    const now = performance.now();
    for (let next = this.#idle.pop(); next !== undefined; next = this.#idle.pop()) {
      if (next.idleUntilMs > now) return next;
      next.close();
    }
    return undefined;
  }

  #closeExpired(): void {
    const now = performance.now();
    const expired = this.#idle.filter(({ idleUntilMs }) => idleUntilMs <= now);
    for (const connection of expired) connection.close();
  }
}

const poolClosed = () => new HttpClientError('closed', 'The connection pool was closed.');

/** The text after the path that all requests share. Framing and connection headers are the client's alone. */
function toHeadText(url: URL, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ host: url.host, ...headers })
    .filter(([name]) => !reservedHeaders.has(name))
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return ` HTTP/1.1\r\n${lines.join('')}`;
}

const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
