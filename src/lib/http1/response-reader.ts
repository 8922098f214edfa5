// An HTTP/1.1 answer from the packets it comes in (RFC 9112): head, then a body of known length, in chunks, or
// until the connection ends. Strict where leniency would let two sides read different things: what is not
// plainly HTTP is refused. Everything that is gathered has a bound.

import type { IncomingHttpHeaders } from 'node:http';
import { Http1Error } from './errors.ts';

export interface ResponseSink {
  head(status: number, headers: IncomingHttpHeaders): void;
  /** All that one packet brought. The bytes are good until this returns. */
  body(bytes: Buffer): void;
  end(): void;
}

/** How the body ends: by its length, by an empty chunk, or with the connection. */
type Framing = 'length' | 'chunks' | 'close';

const cr = 13;
const lf = 10;
const semicolon = 59;
const blankLine = '\r\n\r\n';
/** Of the line before a chunk, with whatever a server adds to its size. */
const maxLineBytes = 1024;
/** Of a chunk's size: 4 GB. */
const maxSizeDigits = 8;

export class ResponseReader {
  /** The connection may be used again after this answer. */
  isReusable = true;
  /** How long the server says that it keeps a quiet connection. */
  keepAliveMs: number | null = null;
  readonly #sink: ResponseSink;
  readonly #maxHeadBytes: number;
  #state: 'head' | 'body' | 'trailers' | 'over' = 'head';
  #framing: Framing = 'length';
  #headBytes = 0;
  /** Of the body, or of the chunk at hand. */
  #left = 0;
  #isAfterChunk = false;
  /** Of a head or a line whose end has not come yet. */
  #rest: Buffer | null = null;

  constructor(sink: ResponseSink, maxHeadBytes: number) {
    this.#sink = sink;
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
      else if (this.#framing === 'chunks') at = this.#readChunks(bytes, at);
      else at = this.#readPlain(bytes, at);
    }
  }

  /** The connection has ended, and with it an answer that lasts until then. */
  close(): void {
    if (this.#state === 'body' && this.#framing === 'close') this.#finish();
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
    this.#begin(toText(bytes, at, end));
    return end + blankLine.length;
  }

  #begin(text: string): void {
    const lineEnd = text.indexOf('\r\n');
    const line = lineEnd === -1 ? text : text.slice(0, lineEnd);
    const [, minor, digits] = statusLine.exec(line) ?? [];
    if (digits === undefined) throw new Http1Error('not_http', 'no status line');
    const status = Number(digits);
    // Nobody asked for another protocol.
    if (status === 101) throw new Http1Error('not_http', 'switched protocols unasked');
    const headers = lineEnd === -1 ? {} : parseHeaders(text, lineEnd + 2);
    if (status < 200) return;
    this.#frame(status, headers);
    const wish = headers.connection?.toLowerCase() ?? '';
    const keeps = minor === '1' ? !wish.includes('close') : wish.includes('keep-alive');
    this.isReusable = keeps && this.#framing !== 'close';
    this.keepAliveMs = toKeepAliveMs(headers['keep-alive']);
    this.#state = 'body';
    this.#sink.head(status, headers);
    if (this.#framing === 'length' && this.#left === 0) this.#finish();
  }

  #frame(status: number, headers: IncomingHttpHeaders): void {
    const coding = headers['transfer-encoding'];
    const length = headers['content-length'];
    // These have no body, whatever they say.
    if (status === 204 || status === 304) return;
    if (coding !== undefined) {
      // Either one alone is clear; both are how one answer is smuggled into another.
      if (length !== undefined || coding.toLowerCase() !== 'chunked')
        throw new Http1Error('not_http', 'a body whose end can not be told');
      this.#framing = 'chunks';
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new Http1Error('not_http', 'no length');
      this.#left = Number(length);
    } else this.#framing = 'close';
  }

  #readPlain(bytes: Buffer, at: number): number {
    const isOpen = this.#framing === 'close';
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
      parseHeaders(toText(bytes, at, end), 0);
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

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/;
const keepAliveHint = /(?:^|[\s,;])timeout=(\d{1,9})/i;

function toKeepAliveMs(hint: unknown): number | null {
  const seconds = typeof hint === 'string' ? keepAliveHint.exec(hint)?.[1] : undefined;
  return seconds === undefined ? null : Number(seconds) * 1000;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant.
const stray = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;

/** Lines that others could end elsewhere are none. */
function toText(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('latin1', from, to);
  if (stray.test(text)) throw new Http1Error('not_http', 'control characters in a header');
  return text;
}

/** As Node gives them: names in lower case, values of the same name joined. */
function parseHeaders(text: string, from: number): IncomingHttpHeaders {
  const headers: Record<string, string> = {};
  for (let at = from; at < text.length; ) {
    const found = text.indexOf('\r\n', at);
    const end = found === -1 ? text.length : found;
    const colon = text.indexOf(':', at);
    const name = colon === -1 || colon > end ? '' : text.slice(at, colon);
    if (!headerName.test(name)) throw new Http1Error('not_http', 'a header that is none');
    const key = name.toLowerCase();
    const value = text.slice(colon + 1, end).trim();
    headers[key] = Object.hasOwn(headers, key) ? `${headers[key]}, ${value}` : value;
    at = end + 2;
  }
  return headers;
}

function toDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
