// The head of a request, where it is as nearly all are: a POST in HTTP/1.1 with a body of a known length, each
// header once, none that changes how the connection is used, and all of it there. Anything else is not read
// here, whether it is valid or not.

import type { IncomingHttpHeaders } from 'node:http';

export interface RequestHead {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bodyBytes: number;
}

const mostBytes = 8192;
const blankLine = Buffer.from('\r\n\r\n');
const shape =
  /^POST (\/[!-~]*) HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const digits = /^\d{1,15}$/;
const lengthLine = /\r\ncontent-length:[\t ]*/i;
/** What changes how the connection is used, or how long the body is. */
const unusual = ['transfer-encoding', 'expect', 'upgrade', 'proxy-connection'];
const space = 32;
const tab = 9;

/** How many bytes it takes, with its blank line; 0 when its end is not there. */
export function headBytes(packet: Buffer): number {
  const end = packet.indexOf(blankLine);
  return end === -1 || end > mostBytes ? 0 : end + blankLine.length;
}

/** Of one connection: a client writes the same each time, but for the length of the body. */
export class RequestHeads {
  #last: RequestHead | null = null;
  /** What stood around that length. */
  #before = '';
  #after = '';

  /** Null for anything else. */
  read(packet: Buffer, bytes: number): RequestHead | null {
    // Without the blank line itself.
    const text = packet.toString('latin1', 0, bytes - 2);
    return this.#readAgain(text) ?? this.#readNew(text);
  }

  #readAgain(text: string): RequestHead | null {
    if (this.#last === null) return null;
    const [from, to] = [this.#before.length, text.length - this.#after.length];
    // Comparing slices is several times as fast as `startsWith`.
    if (to <= from || text.slice(0, from) !== this.#before) return null;
    const length = text.slice(from, to);
    if (!digits.test(length) || text.slice(to) !== this.#after) return null;
    const { path, headers } = this.#last;
    return {
      path,
      headers: { ...headers, 'content-length': length },
      bodyBytes: Number(length),
    };
  }

  #readNew(text: string): RequestHead | null {
    const head = readHead(text);
    const found = lengthLine.exec(text);
    this.#last = found === null ? null : head;
    if (head === null || found === null) return head;
    const from = found.index + found[0].length;
    this.#before = text.slice(0, from);
    this.#after = text.slice(from + String(head.headers['content-length']).length);
    return head;
  }
}

/** Null for anything else. */
function readHead(text: string): RequestHead | null {
  const path = shape.exec(text)?.[1];
  if (path === undefined) return null;
  const headers: Record<string, string> = {};
  for (let at = text.indexOf('\n') + 1; at < text.length; ) {
    const colon = text.indexOf(':', at);
    const end = text.indexOf('\r', colon);
    const name = text.slice(at, colon).toLowerCase();
    // Twice, or a name that every object has.
    if (name in headers) return null;
    headers[name] = unpad(
      text.slice(text.charCodeAt(colon + 1) === space ? colon + 2 : colon + 1, end),
    );
    at = end + 2;
  }
  const length = headers['content-length'];
  if (length === undefined || !digits.test(length) || isUnusual(headers)) return null;
  return { path, headers, bodyBytes: Number(length) };
}

function isUnusual(headers: Readonly<Record<string, string>>): boolean {
  for (const name of unusual) if (name in headers) return true;
  const { connection } = headers;
  return connection !== undefined && connection.toLowerCase() !== 'keep-alive';
}

/** By hand: a regular expression for the end of a text looks at every run of blanks within it, again and again. */
function unpad(value: string): string {
  let from = 0;
  let to = value.length;
  while (from < to && isPad(value.charCodeAt(from))) from++;
  while (to > from && isPad(value.charCodeAt(to - 1))) to--;
  return to - from === value.length ? value : value.slice(from, to);
}

const isPad = (code: number) => code === space || code === tab;
