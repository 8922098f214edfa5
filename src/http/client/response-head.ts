// The head of an HTTP/1.1 answer: what it says, how long its body is, and what becomes of the connection.

import type { IncomingHttpHeaders } from 'node:http';
import { Http1Error } from './errors.ts';

export interface ResponseHead {
  readonly status: number;
  /** Of all answers that begin alike: nobody's to change. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly framing: Framing;
  /** The connection may be used again after this answer. */
  readonly isReusable: boolean;
  /** How long the server says that it keeps a quiet connection. */
  readonly keepAliveMs: number | null;
}

/** How the body ends: after so many bytes, by an empty chunk, or with the connection. */
export type Framing = number | 'chunks' | 'close';

/** A server begins most of its answers of one second with the same text; it is read once. */
export class ResponseHeads {
  #text = '';
  #head: ResponseHead | null = null;

  /** Without its blank line. Throws Http1Error where it is none. */
  read(text: string): ResponseHead {
    if (this.#head !== null && text === this.#text) return this.#head;
    this.#head = parseHead(text);
    this.#text = text;
    return this.#head;
  }
}

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/;

function parseHead(text: string): ResponseHead {
  const lineEnd = text.indexOf('\r\n');
  const line = lineEnd === -1 ? text : text.slice(0, lineEnd);
  const [, minor, digits] = statusLine.exec(line) ?? [];
  if (digits === undefined) throw new Http1Error('not_http', 'no status line');
  const status = Number(digits);
  // Nobody asked for another protocol.
  if (status === 101) throw new Http1Error('not_http', 'switched protocols unasked');
  const headers = parseHeaders(text, lineEnd === -1 ? text.length : lineEnd + 2);
  // What is sent ahead of the answer has no body, and says nothing of it.
  const framing = status < 200 ? 0 : toFraming(status, headers);
  const wish = headers.connection?.toLowerCase() ?? '';
  const keeps = minor === '1' ? !wish.includes('close') : wish.includes('keep-alive');
  const isReusable = keeps && framing !== 'close';
  return { status, headers, framing, isReusable, keepAliveMs: toKeepAliveMs(headers) };
}

function toFraming(status: number, headers: IncomingHttpHeaders): Framing {
  const coding = headers['transfer-encoding'];
  const length = headers['content-length'];
  // These have no body, whatever they say.
  if (status === 204 || status === 304) return 0;
  if (coding !== undefined) {
    // Either one alone is clear; both are how one answer is smuggled into another.
    if (length !== undefined || coding.toLowerCase() !== 'chunked')
      throw new Http1Error('not_http', 'a body whose end can not be told');
    return 'chunks';
  }
  if (length === undefined) return 'close';
  if (!/^\d{1,15}$/.test(length)) throw new Http1Error('not_http', 'no length');
  return Number(length);
}

const keepAliveHint = /(?:^|[\s,;])timeout=(\d{1,9})/i;

function toKeepAliveMs({ 'keep-alive': hint }: IncomingHttpHeaders): number | null {
  const seconds = typeof hint === 'string' ? keepAliveHint.exec(hint)?.[1] : undefined;
  return seconds === undefined ? null : Number(seconds) * 1000;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant.
const stray = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;

/** As Node gives them: names in lower case, values of the same name joined. */
export function parseHeaders(text: string, from: number): IncomingHttpHeaders {
  // Lines that others could end elsewhere are none.
  if (stray.test(text)) throw new Http1Error('not_http', 'control characters in a header');
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
