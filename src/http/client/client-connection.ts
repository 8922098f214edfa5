// One connection to a server. It carries one request at a time.

import type { OnReadOpts, Socket } from 'node:net';
import { HttpClientError, type ResponseHandler } from './response-handler.ts';
import { type ResponseHead, ResponseParser } from './response-parser.ts';

/** Text, or bytes in pieces, which are written as they are: to encode megabytes would block the event loop. */
export type OutgoingBody = string | readonly Uint8Array[];

export const byteLengthOf = (body: OutgoingBody): number =>
  typeof body === 'string'
    ? Buffer.byteLength(body)
    : body.reduce((sum, piece) => sum + piece.length, 0);

export interface OutgoingRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: OutgoingBody | null;
  /** Headers of this request, besides those of every request. Names and values are not validated. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export interface ClientConnectionOptions {
  connect(onread: OnReadOpts): Socket;
  /** Receive buffer shared by all connections of a pool. Each packet is parsed before the next one is read. */
  readonly packet: Buffer;
  /** The text that follows the path in every request: the version and the common headers. */
  readonly headText: string;
  readonly connectMs: number;
  readonly maxHeadBytes: number;
  /** The connection can take a request. */
  onIdle(connection: ClientConnection): void;
  /** The connection can't be used any more. `error` is set if it was never established. */
  onClosed(connection: ClientConnection, error: Error | null): void;
}

/** How long an idle connection is kept if the server does not send `Keep-Alive: timeout=…`. */
const defaultIdleMs = 4000;
/** Subtracted from the server's keep-alive timeout, which started before its response arrived here. */
const keepAliveMarginMs = 2000;
const maxIdleMs = 600_000;

export class ClientConnection {
  /** When an idle connection expires, in `performance.now()` milliseconds. */
  idleUntilMs = 0;
  readonly #socket: Socket;
  readonly #options: ClientConnectionOptions;
  #connectTimer: NodeJS.Timeout | null;
  /** Handler and parser of the response in progress; null while idle. */
  #handler: ResponseHandler<ClientConnection> | null = null;
  #parser: ResponseParser | null = null;
  #isReused = false;
  #hasResponse = false;
  #isClosed = false;
  #error: Error | null = null;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    const callback = (length: number) => this.#receive(options.packet.subarray(0, length));
    const socket = options.connect({ buffer: options.packet, callback });
    this.#socket = socket;
    this.#connectTimer = setTimeout(() => {
      const message = `No connection within ${options.connectMs} ms.`;
      this.close(new HttpClientError('connect_timeout', message));
    }, options.connectMs);
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => this.#connected());
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', () => this.close(this.#error));
  }

  get isConnecting(): boolean {
    return this.#connectTimer !== null;
  }

  send(request: OutgoingRequest, handler: ResponseHandler<ClientConnection>): void {
    const { method, path, headers, body } = request;
    let head = `${method} ${path}${this.#options.headText}`;
    for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
    const bytes = body === null ? 0 : byteLengthOf(body);
    head += body === null ? '\r\n' : `content-length: ${bytes}\r\n\r\n`;
    this.#handler = handler;
    this.#hasResponse = false;
    this.#parser = new ResponseParser(handler, this.#options.maxHeadBytes);
    handler.onSent(this);
    this.#write(head, body ?? '', bytes);
  }

  #write(head: string, body: OutgoingBody, bytes: number): void {
    // A body with as many bytes as characters is ASCII, and latin1 is written without encoding it.
    if (typeof body === 'string') {
      this.#socket.write(head + body, bytes === body.length ? 'latin1' : 'utf8');
      return;
    }
    this.#socket.cork();
    this.#socket.write(head, 'latin1');
    for (const piece of body) this.#socket.write(piece);
    this.#socket.uncork();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes the connection. The handler is not called again. */
  abort(): void {
    this.#handler = null;
    this.#parser?.abort();
    this.close();
  }

  /** Fails the response in progress with `error`, or as cut off by the server. */
  close(error: Error | null = null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const wasConnected = this.#connectTimer === null;
    this.#stopConnecting();
    this.#socket.destroy();
    const handler = this.#parser?.isComplete === true ? null : this.#handler;
    this.#handler = null;
    this.#parser?.abort();
    const reason = error ?? new HttpClientError('cut_off', 'The server closed the connection.');
    handler?.onError(this.#isStale(reason) ? toStale(reason) : reason);
    this.#options.onClosed(this, wasConnected ? null : reason);
  }

  #isStale(reason: Error): boolean {
    const isOurs = reason instanceof HttpClientError && reason.code === 'closed';
    return this.#isReused && !this.#hasResponse && !isOurs;
  }

  #connected(): void {
    this.#stopConnecting();
    if (!this.#isClosed) this.#becomeIdle(defaultIdleMs);
  }

  #stopConnecting(): void {
    if (this.#connectTimer !== null) clearTimeout(this.#connectTimer);
    this.#connectTimer = null;
  }

  /** Returns true to go on reading. */
  #receive(packet: Buffer): boolean {
    if (this.#isClosed) return false;
    this.#hasResponse = true;
    const parser = this.#parser;
    try {
      parser?.read(packet);
    } catch (error) {
      this.close(error as Error);
    }
    // Without a request in progress the server may not send anything.
    if (parser === null) this.close();
    else if (parser.isComplete && !this.#isClosed) this.#finish(parser.head);
    return true;
  }

  #finish(head: ResponseHead | null): void {
    this.#handler = null;
    this.#parser = null;
    this.#isReused = true;
    // The handler may have paused on the last packet. The next response starts unpaused.
    if (this.#socket.isPaused()) this.#socket.resume();
    const keepAliveMs = head?.keepAliveMs ?? null;
    const idleMs = keepAliveMs === null ? defaultIdleMs : keepAliveMs - keepAliveMarginMs;
    // A server that responds before it has read the whole request may never read the rest.
    const isClean = head?.isReusable === true && this.#socket.writableLength === 0;
    if (isClean && idleMs > 0) this.#becomeIdle(Math.min(idleMs, maxIdleMs));
    else this.close();
  }

  #becomeIdle(idleMs: number): void {
    this.idleUntilMs = performance.now() + idleMs;
    this.#options.onIdle(this);
  }

  /** The server has sent FIN, which completes a response that has no other end. */
  #ended(): void {
    try {
      this.#parser?.close();
      this.close();
    } catch (error) {
      this.close(error as Error);
    }
  }
}

const toStale = (cause: Error) =>
  new HttpClientError('stale_connection', 'The server closed a reused connection.', cause);
