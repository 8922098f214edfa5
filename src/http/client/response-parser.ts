// An incremental parser of one HTTP/1.1 response (RFC 9112). It is strict where leniency would let
// two parsers read different things, such as header lines that another one could split differently.
// Everything it buffers has a bound.

import type { IncomingHttpHeaders } from 'node:http';
import { HttpClientError, type ResponseHandler } from './response-handler.ts';

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
   * A packet may hold dozens of chunks. Their content is moved together and passed on as one: a
   * stream of 50 chunks in one packet costs the engine 28 % more CPU if each chunk is passed on by
   * itself (`node bench/upstream.ts stream`).
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

export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly framing: BodyFraming;
  /** The connection may be reused after this response. */
  readonly isReusable: boolean;
  /** The server's keep-alive timeout (`Keep-Alive: timeout=…`); null if it sends none. */
  readonly keepAliveMs: number | null;
}

/** How the body ends: after this many bytes, with the last chunk, or when the connection closes. */
export type BodyFraming = number | 'chunked' | 'close';

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/;

/** Parses a head without its final blank line. Throws HttpClientError. */
function parseResponseHead(text: string): ResponseHead {
  const lineEnd = text.indexOf('\r\n');
  const line = lineEnd === -1 ? text : text.slice(0, lineEnd);
  const [, minor, digits] = statusLine.exec(line) ?? [];
  if (digits === undefined) throw notHttp('The response has no status line.');
  const status = Number(digits);
  if (status === 101) throw notHttp('The server switched protocols, which was not requested.');
  const headers = parseHeaders(text, lineEnd === -1 ? text.length : lineEnd + 2);
  const framing = toBodyFraming(status, headers);
  const connection = headers.connection?.toLowerCase() ?? '';
  const isKept = minor === '1' ? !connection.includes('close') : connection.includes('keep-alive');
  const isReusable = isKept && framing !== 'close';
  return { status, headers, framing, isReusable, keepAliveMs: toKeepAliveMs(headers) };
}

function toBodyFraming(status: number, headers: IncomingHttpHeaders): BodyFraming {
  const coding = headers['transfer-encoding'];
  const length = headers['content-length'];
  // Both headers together are how a response is smuggled into another. They are refused even if the status allows
  // no body: another parser may read one.
  if (coding !== undefined && (length !== undefined || coding.toLowerCase() !== 'chunked'))
    throw notHttp('The end of the body is ambiguous.');
  if (length !== undefined && !/^\d{1,15}$/.test(length))
    throw notHttp('content-length is not a number.');
  // These have no body, whatever their headers say.
  if (status < 200 || status === 204 || status === 304) return 0;
  if (coding !== undefined) return 'chunked';
  return length === undefined ? 'close' : Number(length);
}

const keepAliveTimeout = /(?:^|[\s,;])timeout=(\d{1,9})/i;

function toKeepAliveMs({ 'keep-alive': value }: IncomingHttpHeaders): number | null {
  const seconds = typeof value === 'string' ? keepAliveTimeout.exec(value)?.[1] : undefined;
  return seconds === undefined ? null : Number(seconds) * 1000;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters, which headers must not hold.
const forbidden = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;

/** Parses header lines from `start` as Node does: names in lower case, values of the same name joined by commas. */
function parseHeaders(text: string, start: number): IncomingHttpHeaders {
  if (forbidden.test(text)) throw notHttp('A header holds control characters.');
  const headers: Record<string, string> = {};
  for (let at = start; at < text.length; ) {
    const found = text.indexOf('\r\n', at);
    const end = found === -1 ? text.length : found;
    const colon = text.indexOf(':', at);
    const name = colon === -1 || colon > end ? '' : text.slice(at, colon);
    if (!headerName.test(name)) throw notHttp('A header has no valid name.');
    const key = name.toLowerCase();
    const value = trimSpaces(text, colon + 1, end);
    headers[key] = Object.hasOwn(headers, key) ? `${headers[key]}, ${value}` : value;
    at = end + 2;
  }
  return headers;
}

/** Spaces and tabs alone: `trim` would also remove a no-break space, which is part of the value. */
function trimSpaces(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isSpace(text.charCodeAt(from))) from++;
  while (to > from && isSpace(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

const isSpace = (code: number) => code === 32 || code === 9;
