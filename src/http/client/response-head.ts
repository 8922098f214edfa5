// The head of an HTTP/1.1 response: status, headers, how the body is framed, and whether the connection can be
// reused. Header lines that another parser could split differently are refused.

import type { IncomingHttpHeaders } from 'node:http';
import { HttpClientError } from './errors.ts';

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
export function parseResponseHead(text: string): ResponseHead {
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
export function parseHeaders(text: string, start: number): IncomingHttpHeaders {
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

const notHttp = (message: string) => new HttpClientError('not_http', message);
