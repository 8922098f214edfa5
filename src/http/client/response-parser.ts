// An HTTP/1.1 answer from the packets it comes in (RFC 9112): head, then a body of known length, in chunks, or
// until the connection ends. Strict where leniency would let two sides read different things: what is not
// plainly HTTP is refused. Everything that is gathered has a bound.

import type { IncomingHttpHeaders } from 'node:http';
import { Http1Error } from './errors.ts';
import { parseHeaders, type ResponseHead, type ResponseHeads } from './response-head.ts';

export interface ResponseSink {
  head(status: number, headers: Readonly<IncomingHttpHeaders>): void;
  /** All that one packet brought. The bytes are good until this returns. */
  body(bytes: Buffer): void;
  end(): void;
}

const cr = 13;
const lf = 10;
const semicolon = 59;
const blankLine = '\r\n\r\n';
/** Of the line before a chunk, with whatever a server adds to its size. */
const maxLineBytes = 1024;
/** Of a chunk's size: 4 GB. */
const maxSizeDigits = 8;

export class ResponseReader {
  /** Null until it has come. */
  head: ResponseHead | null = null;
  readonly #sink: ResponseSink;
  readonly #heads: ResponseHeads;
  readonly #maxHeadBytes: number;
  #state: 'head' | 'body' | 'trailers' | 'over' = 'head';
  #headBytes = 0;
  /** Of the body, or of the chunk at hand. */
  #left = 0;
  #isAfterChunk = false;
  /** Of a head or a line whose end has not come yet. */
  #rest: Buffer | null = null;

  constructor(sink: ResponseSink, heads: ResponseHeads, maxHeadBytes: number) {
    this.#sink = sink;
    this.#heads = heads;
    this.#maxHeadBytes = maxHeadBytes;
  }

  /** Throws Http1Error where it is no HTTP. What is in a chunk may be moved within the packet. */
  read(packet: Buffer): void {
    const bytes = this.#rest === null ? packet : Buffer.concat([this.#rest, packet]);
    this.#rest = null;
    let at = 0;
    while (at < bytes.length && this.#rest === null) {
      if (this.#state === 'head') at = this.#readHead(bytes, at);
      else if (this.#state === 'trailers') at = this.#readTrailers(bytes, at);
      else if (this.#state === 'over') throw new Http1Error('not_http', 'bytes after the answer');
      else if (this.head?.framing === 'chunks') at = this.#readChunks(bytes, at);
      else at = this.#readPlain(bytes, at);
    }
  }

  /** The connection has ended, and with it an answer that lasts until then. */
  close(): void {
    if (this.#state === 'body' && this.head?.framing === 'close') this.#finish();
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  #readHead(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(blankLine, at, 'latin1');
    // What was sent ahead of the answer counts as well: there is no end to it otherwise.
    const length = (end === -1 ? bytes.length : end) - at;
    if (this.#headBytes + length > this.#maxHeadBytes)
      throw new Http1Error('head_too_large', 'headers without end');
    if (end === -1) return this.#keep(bytes, at);
    this.#headBytes += length + blankLine.length;
    this.#begin(bytes.toString('latin1', at, end));
    return end + blankLine.length;
  }

  #begin(text: string): void {
    const head = this.#heads.read(text);
    if (head.status < 200) return;
    this.head = head;
    this.#left = typeof head.framing === 'number' ? head.framing : 0;
    this.#state = 'body';
    this.#sink.head(head.status, head.headers);
    if (head.framing === 0) this.#finish();
  }

  #readPlain(bytes: Buffer, at: number): number {
    const isOpen = this.head?.framing === 'close';
    const end = isOpen ? bytes.length : Math.min(at + this.#left, bytes.length);
    this.#sink.body(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (isOpen) return end;
    this.#left -= end - at;
    if (this.#left === 0) this.#finish();
    return end;
  }

  /** A packet may hold dozens: what is in them is moved together and handed on as one. */
  #readChunks(bytes: Buffer, from: number): number {
    let at = from;
    let end = from;
    let begin = from;
    while (at < bytes.length) {
      if (this.#left === 0) {
        const next = this.#readSize(bytes, at);
        if (next === -1) {
          this.#keepLine(bytes, at);
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
    if (end > begin) this.#sink.body(bytes.subarray(begin, end));
    return at;
  }

  /** Where the chunk begins whose size is read here; -1 when not all of its line has come. */
  #readSize(bytes: Buffer, from: number): number {
    let at = from;
    if (this.#isAfterChunk) {
      if (at + 1 >= bytes.length) return -1;
      if (bytes[at] !== cr || bytes[at + 1] !== lf)
        throw new Http1Error('not_http', 'a chunk that does not end');
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
    if (digits === 0 || digits > maxSizeDigits) throw new Http1Error('not_http', 'no chunk size');
    if (bytes[at] === semicolon) at = bytes.indexOf(cr, at);
    if (at === -1 || at + 1 >= bytes.length) return -1;
    if (bytes[at] !== cr || bytes[at + 1] !== lf) throw new Http1Error('not_http', 'no chunk size');
    this.#left = size;
    this.#isAfterChunk = false;
    return at + 2;
  }

  /** Nobody asked for any; they are read to find the end. */
  #readTrailers(bytes: Buffer, at: number): number {
    if (bytes[at] === cr && bytes[at + 1] === lf) {
      this.#finish();
      return at + 2;
    }
    const end = bytes.indexOf(blankLine, at, 'latin1');
    if (end !== -1) {
      parseHeaders(bytes.toString('latin1', at, end), 0);
      this.#finish();
      return end + blankLine.length;
    }
    if (bytes.length - at > this.#maxHeadBytes)
      throw new Http1Error('head_too_large', 'trailers without end');
    return this.#keep(bytes, at);
  }

  #keepLine(bytes: Buffer, at: number): void {
    if (bytes.length - at > maxLineBytes) throw new Http1Error('not_http', 'no chunk size');
    this.#keep(bytes, at);
  }

  /** The packet's memory is not ours. */
  #keep(bytes: Buffer, at: number): number {
    this.#rest = Buffer.from(bytes.subarray(at));
    return bytes.length;
  }

  #finish(): void {
    this.#state = 'over';
    this.#sink.end();
  }
}

function toDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
