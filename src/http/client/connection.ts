// One connection to a server: a request at a time, and its answer.

import type { IncomingHttpHeaders } from 'node:http';
import type { OnReadOpts, Socket } from 'node:net';
import { Http1Error } from './errors.ts';
import type { ResponseHead, ResponseHeads } from './response-head.ts';
import { ResponseReader, type ResponseSink } from './response-parser.ts';

export interface OutgoingRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string | null;
  /** Besides those of every request. Nobody looks at names and values any more. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** Who takes an answer. Exactly one of `end` and `failed` is called, unless it breaks off by itself. */
export interface Handler extends ResponseSink {
  sent(link: Link): void;
  /** `isStale`: the connection was used before, and nothing of this answer had come. */
  failed(error: Error, isStale: boolean): void;
}

export interface LinkOptions {
  connect(onread: OnReadOpts): Socket;
  /** Where all packets are put, one at a time: it is read before the next one comes, to whomever. */
  readonly packet: Buffer;
  /** What follows the path in every request. */
  readonly headText: string;
  readonly connectMs: number;
  readonly maxHeadBytes: number;
  /** Of this server. */
  readonly heads: ResponseHeads;
  /** It can take a request. */
  free(link: Link): void;
  /** It can take none any more; with an error when it never could. */
  closed(link: Link, error: Error | null): void;
}

/** A quiet connection is used again for so long, unless the server says how long it keeps one. */
const idleMs = 4000;
/** A server's time ends sooner than it says, as seen from here. */
const marginMs = 2000;
const longestIdleMs = 600_000;

export class Link implements ResponseSink {
  /** On the clock of `performance.now`; of use while it is idle. */
  idleUntilMs = 0;
  readonly #socket: Socket;
  readonly #options: LinkOptions;
  #connecting: NodeJS.Timeout | null;
  #handler: Handler | null = null;
  #reader: ResponseReader | null = null;
  #isUsed = false;
  #hasAnswer = false;
  #isClosed = false;
  #error: Error | null = null;

  constructor(options: LinkOptions) {
    this.#options = options;
    const callback = (length: number) => this.#receive(options.packet.subarray(0, length));
    const socket = options.connect({ buffer: options.packet, callback });
    this.#socket = socket;
    this.#connecting = setTimeout(() => {
      this.close(new Http1Error('connect_timeout', 'no connection in time'));
    }, options.connectMs);
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => this.#connected());
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', () => this.close(this.#error));
  }

  get isConnecting(): boolean {
    return this.#connecting !== null;
  }

  send({ method, path, headers, body }: OutgoingRequest, handler: Handler): void {
    let head = `${method} ${path}${this.#options.headText}`;
    for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
    const bytes = body === null ? 0 : Buffer.byteLength(body);
    const text = body === null ? `${head}\r\n` : `${head}content-length: ${bytes}\r\n\r\n${body}`;
    this.#handler = handler;
    this.#hasAnswer = false;
    this.#reader = new ResponseReader(this, this.#options.heads, this.#options.maxHeadBytes);
    handler.sent(this);
    // As many bytes as characters: then nothing is to be encoded.
    this.#socket.write(text, bytes === (body?.length ?? 0) ? 'latin1' : 'utf8');
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** The answer is not wanted any more, and nobody hears of it. */
  abort(): void {
    this.#handler = null;
    this.close();
  }

  /** Without an error it is not needed any more. */
  close(error: Error | null = null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const wasConnected = this.#connecting === null;
    this.#stopConnecting();
    this.#socket.destroy();
    const handler = this.#handler;
    this.#handler = null;
    const broken = error ?? new Http1Error('cut_off', 'the server closed the connection');
    handler?.failed(broken, this.#isUsed && !this.#hasAnswer);
    this.#options.closed(this, wasConnected ? null : broken);
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#handler?.head(status, headers);
  }

  body(bytes: Buffer): void {
    this.#handler?.body(bytes);
  }

  end(): void {
    const handler = this.#handler;
    this.#handler = null;
    handler?.end();
  }

  #connected(): void {
    this.#stopConnecting();
    if (!this.#isClosed) this.#free(idleMs);
  }

  #stopConnecting(): void {
    if (this.#connecting !== null) clearTimeout(this.#connecting);
    this.#connecting = null;
  }

  /** True for more of it. */
  #receive(packet: Buffer): boolean {
    if (this.#isClosed) return false;
    this.#hasAnswer = true;
    // Without one nobody asked for what came.
    const reader = this.#reader;
    try {
      reader?.read(packet);
    } catch (error) {
      this.close(error as Error);
    }
    if (reader === null) this.close();
    else if (reader.isOver && !this.#isClosed) this.#settle(reader.head);
    return true;
  }

  #settle(head: ResponseHead | null): void {
    this.#reader = null;
    this.#isUsed = true;
    // Whoever held its last packet back has no say in the next answer.
    if (this.#socket.isPaused()) this.#socket.resume();
    const keepAliveMs = head?.keepAliveMs ?? null;
    const quietMs = keepAliveMs === null ? idleMs : keepAliveMs - marginMs;
    // One that answers before it has read all may not read the rest.
    const isClean = head?.isReusable === true && this.#socket.writableLength === 0;
    if (isClean && quietMs > 0) this.#free(Math.min(quietMs, longestIdleMs));
    else this.close();
  }

  #free(quietMs: number): void {
    this.idleUntilMs = performance.now() + quietMs;
    this.#options.free(this);
  }

  /** The server will say no more. */
  #ended(): void {
    try {
      this.#reader?.close();
      this.close();
    } catch (error) {
      this.close(error as Error);
    }
  }
}
