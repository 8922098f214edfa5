// An incremental parser of one HTTP/1.1 response (RFC 9112). It is strict where leniency would let two parsers
// read different things, and everything it buffers has a bound.

import { HttpClientError } from './errors.ts';
import type { ResponseHandler } from './response-handler.ts';
import { parseHeaders, parseResponseHead, type ResponseHead } from './response-head.ts';

const tab = 9;
const cr = 13;
const lf = 10;
const semicolon = 59;
const blankLine = '\r\n\r\n';
/** Maximum bytes of the line before a chunk, including chunk extensions. */
const maxChunkLineBytes = 1024;
/** Eight hexadecimal digits: chunks of up to 4 GB. */
const maxChunkSizeDigits = 8;

export class ResponseParser {
  /** Null until it has been received. */
  head: ResponseHead | null = null;
  readonly #handler: Pick<ResponseHandler<never>, 'onHead' | 'onBody' | 'onEnd'>;
  readonly #maxHeadBytes: number;
  #state: 'head' | 'body' | 'trailers' | 'complete' | 'aborted' = 'head';
  #headBytes = 0;
  /** Bytes left of the body, or of the current chunk. */
  #left = 0;
  #isAfterChunk = false;
  /** Start of a head or a line whose end has not been received. */
  #rest: Buffer | null = null;

  constructor(
    handler: Pick<ResponseHandler<never>, 'onHead' | 'onBody' | 'onEnd'>,
    maxHeadBytes: number,
  ) {
    this.#handler = handler;
    this.#maxHeadBytes = maxHeadBytes;
  }

  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  /** Throws HttpClientError if it is not valid HTTP. May move bytes within the packet. */
  read(packet: Buffer): void {
    const bytes = this.#rest === null ? packet : Buffer.concat([this.#rest, packet]);
    this.#rest = null;
    let at = 0;
    while (at < bytes.length && this.#rest === null && this.#state !== 'aborted') {
      if (this.#state === 'head') at = this.#readHead(bytes, at);
      else if (this.#state === 'trailers') at = this.#readTrailers(bytes, at);
      else if (this.#state === 'complete')
        throw notHttp('The server sent bytes after the response.');
      else if (this.head?.framing === 'chunked') at = this.#readChunks(bytes, at);
      else at = this.#readPlain(bytes, at);
    }
  }

  /** The server closed the connection, which completes a body without a length. */
  close(): void {
    if (this.#state === 'body' && this.head?.framing === 'close') this.#complete();
  }

  /** The handler is not called again, even if the current packet holds more. */
  abort(): void {
    if (this.#state !== 'complete') this.#state = 'aborted';
  }

  #readHead(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(blankLine, at, 'latin1');
    // Informational responses count towards the same bound, or a server could send them forever.
    // The blank line counts too, or a head at the bound would be refused only if a packet ended within that line.
    const next = end === -1 ? bytes.length : end + blankLine.length;
    const length = next - at;
    if (this.#headBytes + length > this.#maxHeadBytes)
      throw tooLarge('headers', this.#maxHeadBytes);
    if (end === -1) return this.#keep(bytes, at);
    this.#headBytes += length;
    this.#begin(bytes.toString('latin1', at, end));
    return next;
  }

  #begin(text: string): void {
    const head = parseResponseHead(text);
    if (head.status < 200) return;
    this.head = head;
    this.#left = typeof head.framing === 'number' ? head.framing : 0;
    this.#state = 'body';
    this.#handler.onHead(head.status, head.headers);
    if (head.framing === 0) this.#complete();
  }

  #readPlain(bytes: Buffer, at: number): number {
    const isOpen = this.head?.framing === 'close';
    const end = isOpen ? bytes.length : Math.min(at + this.#left, bytes.length);
    this.#handler.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (isOpen) return end;
    this.#left -= end - at;
    if (this.#left === 0) this.#complete();
    return end;
  }

  /**
   * A packet may hold dozens of chunks. Their content is moved together and passed on as one: a stream of 50 chunks
   * in one packet costs the engine 28 % more CPU if each chunk is passed on by itself (`node bench/upstream.ts stream`).
   */
  #readChunks(bytes: Buffer, from: number): number {
    let at = from;
    let end = from;
    let begin = from;
    while (at < bytes.length) {
      if (this.#left === 0) {
        const next = this.#readSize(bytes, at);
        if (next === -1) {
          this.#keepChunkLine(bytes, at);
          break;
        }
        at = next;
        if (this.#left === 0) {
          this.#state = 'trailers';
          break;
        }
        if (end === begin) {
          begin = at;
          end = at;
        }
      }
      const taken = Math.min(this.#left, bytes.length - at);
      if (end !== at) bytes.copyWithin(end, at, at + taken);
      end += taken;
      at += taken;
      this.#left -= taken;
      this.#isAfterChunk = this.#left === 0;
    }
    if (end > begin) this.#handler.onBody(bytes.subarray(begin, end));
    return at;
  }

  /** Reads a chunk's size. Returns where its content starts, or -1 if the line is incomplete. */
  #readSize(bytes: Buffer, from: number): number {
    let at = from;
    if (this.#isAfterChunk) {
      if (at + 1 >= bytes.length) return -1;
      if (bytes[at] !== cr || bytes[at + 1] !== lf)
        throw notHttp('A chunk is longer than its size.');
      at += 2;
    }
    let size = 0;
    let digits = 0;
    for (; at < bytes.length; at++) {
      const digit = toDigit(bytes[at] as number);
      if (digit === -1) break;
      size = size * 16 + digit;
      digits++;
    }
    if (at >= bytes.length) return -1;
    if (digits === 0 || digits > maxChunkSizeDigits) throw notHttp('A chunk has no valid size.');
    if (bytes[at] === semicolon) at = findExtensionsEnd(bytes, at);
    if (at + 1 >= bytes.length) return -1;
    if (bytes[at] !== cr || bytes[at + 1] !== lf) throw notHttp('A chunk has no valid size.');
    this.#left = size;
    this.#isAfterChunk = false;
    return at + 2;
  }

  /** Trailers are validated and dropped. */
  #readTrailers(bytes: Buffer, at: number): number {
    if (bytes[at] === cr && bytes[at + 1] === lf) {
      this.#complete();
      return at + 2;
    }
    const end = bytes.indexOf(blankLine, at, 'latin1');
    const next = end === -1 ? bytes.length : end + blankLine.length;
    if (next - at > this.#maxHeadBytes) throw tooLarge('trailers', this.#maxHeadBytes);
    if (end === -1) return this.#keep(bytes, at);
    parseHeaders(bytes.toString('latin1', at, end), 0);
    this.#complete();
    return next;
  }

  #keepChunkLine(bytes: Buffer, at: number): void {
    if (bytes.length - at > maxChunkLineBytes) throw notHttp('A chunk has no valid size.');
    this.#keep(bytes, at);
  }

  /** Copies, because the packet's memory is reused. */
  #keep(bytes: Buffer, at: number): number {
    this.#rest = Buffer.from(bytes.subarray(at));
    return bytes.length;
  }

  #complete(): void {
    if (this.#state === 'aborted') return;
    this.#state = 'complete';
    this.#handler.onEnd();
  }
}

const notHttp = (message: string) => new HttpClientError('not_http', message);

const tooLarge = (what: string, maxBytes: number) =>
  new HttpClientError('head_too_large', `The response has more than ${maxBytes} bytes of ${what}.`);

/**
 * Returns where the carriage return after chunk extensions is, or the end of the bytes. A bare line feed is refused:
 * lenient parsers, such as Node's `insecureHTTPParser`, take it for the end of the line.
 */
function findExtensionsEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length && bytes[at] !== cr; at++) {
    const code = bytes[at] as number;
    if ((code < 32 && code !== tab) || code === 127)
      throw notHttp('A chunk extension holds control characters.');
  }
  return at;
}

/** -1 if it is no hexadecimal digit. */
function toDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
