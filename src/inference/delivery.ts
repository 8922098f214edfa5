// Where the response to a request goes: to a client over HTTP, or into memory for a request without
// a connection, such as one of a batch. An HTTP response is written directly on Node's object,
// because a body that is one string needs neither the serializer nor the hooks of Fastify's reply.

import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { type Cancellation, ClientDisconnect } from '#http/client-disconnect.ts';
import type { HeaderList } from '#http/response-headers.ts';
import type { EventStream, EventStreams, KeepAlive } from '#http/sse.ts';
import type { EngineResponse, WrittenResponse } from '#inference/wire/response.ts';
import { InferenceError } from './errors.ts';

/** Exactly one of `send`, `sendWritten` and `openStream` is called, once. The headers must not be used afterwards. */
export interface Delivery {
  /** Aborted when the response is no longer wanted. */
  readonly signal: Cancellation;
  send(status: number, headers: HeaderList, body: unknown): void;
  sendWritten(headers: HeaderList, written: WrittenResponse): void;
  openStream(headers: HeaderList, keepAlive?: KeepAlive): EventStream;
  /** Ends a response that failed. An error is sent if nothing was sent yet; otherwise the response is cut off. */
  fail(status: number, headers: HeaderList, body: unknown): void;
}

export class HttpDelivery implements Delivery {
  readonly #response: ServerResponse;
  readonly #streams: EventStreams;
  #signal: ClientDisconnect | null = null;

  constructor(response: ServerResponse, streams: EventStreams) {
    this.#response = response;
    this.#streams = streams;
  }

  get signal(): ClientDisconnect {
    this.#signal ??= new ClientDisconnect(this.#response);
    return this.#signal;
  }

  send(status: number, headers: HeaderList, body: unknown): void {
    const text = JSON.stringify(body);
    const length = Buffer.byteLength(text);
    headers.push('content-type', 'application/json; charset=utf-8', 'content-length', length);
    // If each character is one byte, Node sends the text and the headers in one write.
    const encoding = length === text.length ? 'latin1' : 'utf8';
    this.#response.writeHead(status, headers).end(text, encoding);
  }

  /** Sends a large response in slices, as the client takes them: with TLS, each write is encrypted at once. */
  sendWritten(headers: HeaderList, written: WrittenResponse): void {
    const parts = toParts(written);
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    headers.push('content-type', 'application/json; charset=utf-8', 'content-length', length);
    this.#response.writeHead(200, headers);
    // The pipeline fails if the client disconnects, which the signal reports.
    pipeline(Readable.from(toSlices(parts), { objectMode: true }), this.#response, () => {});
  }

  openStream(headers: HeaderList, keepAlive?: KeepAlive): EventStream {
    return this.#streams.open(this.#response, headers, { signal: this.signal, keepAlive });
  }

  fail(status: number, headers: HeaderList, body: unknown): void {
    if (this.#response.headersSent) this.#response.destroy();
    else if (!this.#response.destroyed) this.send(status, headers, body);
  }
}

/** Keeps a whole response. Not for streams. */
export class KeptDelivery implements Delivery {
  readonly signal: Cancellation;
  status = 0;
  headers: HeaderList = [];
  body: unknown = null;

  constructor(signal: Cancellation) {
    this.signal = signal;
  }

  send(status: number, headers: HeaderList, body: unknown): void {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  sendWritten(headers: HeaderList, written: WrittenResponse): void {
    this.send(200, headers, parseWritten(written));
  }

  openStream(): EventStream {
    throw new Error('A stream can’t be kept as a whole');
  }

  fail(status: number, headers: HeaderList, body: unknown): void {
    this.send(status, headers, body);
  }
}

export const parseWritten = (written: WrittenResponse): EngineResponse =>
  JSON.parse(Buffer.concat(toParts(written)).toString()) as EngineResponse;

/** True if no one waits for the response. False if it was ended by an error that the client must be told. */
export const isUnwanted = ({ aborted, reason }: Cancellation): boolean =>
  aborted && !(reason instanceof InferenceError);

const toParts = ({ before, usage, after }: WrittenResponse): Uint8Array[] => [
  before,
  Buffer.from(JSON.stringify(usage)),
  after,
];

const sliceBytes = 256 * 1024;

function* toSlices(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const part of parts)
    for (let at = 0; at < part.length; at += sliceBytes) yield part.subarray(at, at + sliceBytes);
}
