// Random HTTP/1.1 responses for fast-check: valid ones with what a client must read from them, and mutations that
// make them invalid or ambiguous. All bytes are latin1 text, as in the other tests of the HTTP client.

import fc from 'fast-check';

export interface GeneratedResponse {
  readonly text: string;
  readonly status: number;
  /** As Node gives them: names in lower case, repeated values joined by commas. */
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly isReusable: boolean;
  readonly keepAliveMs: number | null;
}

interface HeaderLine {
  readonly name: string;
  readonly value: string;
  /** Optional whitespace around the value. */
  readonly before: string;
  readonly after: string;
}

const tokenCharacter = fc.constantFrom(..."abcXYZ019-_.!#$%&'*+^`|~");
const token = fc.string({ unit: tokenCharacter, minLength: 1, maxLength: 8 });
const space = fc.constantFrom('', ' ', '\t', '  ', ' \t ');

/** Includes a no-break space (0xa0) at either end, which is part of the value. */
const visible = fc.constantFrom(...'abcZ09:;,="\\()<>@', '\x80', '\xa0', '\xff');
const value = fc
  .array(fc.string({ unit: visible, minLength: 1, maxLength: 6 }), { maxLength: 3 })
  .map((words) => words.join(' '));

/** Few names, so that some are repeated. The prefix keeps clear of names that Node treats specially. */
const name = fc.oneof(
  fc.constantFrom('x-a', 'X-A', 'X-b'),
  token.map((rest) => `x-${rest}`),
);
const header: fc.Arbitrary<HeaderLine> = fc.record({ name, value, before: space, after: space });
const headers = fc.array(header, { maxLength: 5 });

const informational = fc
  .tuple(fc.constantFrom('100 Continue', '102 Processing', '103 Early Hints'), headers)
  .map(([status, lines]) => `HTTP/1.1 ${status}\r\n${toText(lines)}\r\n`);

/** Bodies hold what looks like framing, which a parser that loses count would take for its own. */
const body = fc
  .array(
    fc.oneof(
      fc.constantFrom('\r', '\n', '\r\n', '0\r\n\r\n', '5\r\n', 'HTTP/1.1 200 OK\r\n\r\n', '\0'),
      fc.string({ unit: visible, minLength: 1, maxLength: 40 }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));

const extension = fc
  .tuple(
    token,
    fc.option(
      fc.oneof(
        token,
        token.map((text) => `"${text}"`),
      ),
    ),
  )
  .map(([key, given]) => (given === null ? `;${key}` : `;${key}=${given}`));
const chunkStyle = fc.record({
  bytes: fc.integer({ min: 1, max: 40 }),
  zeros: fc.constantFrom('', '', '0', '000'),
  isUpper: fc.boolean(),
  extensions: fc.array(extension, { maxLength: 2 }).map((all) => all.join('')),
});
type ChunkStyle = typeof chunkStyle extends fc.Arbitrary<infer Style> ? Style : never;

const connection = fc.constantFrom(null, null, 'close', 'Close', 'keep-alive', 'Keep-Alive');
const keepAlive = fc.option(fc.integer({ min: 0, max: 3600 }));

const parts = fc.record({
  early: fc.array(informational, { maxLength: 2 }).map((all) => all.join('')),
  minor: fc.constantFrom(1, 1, 1, 0),
  status: fc.constantFrom(200, 200, 200, 201, 204, 206, 304, 400, 404, 429, 500, 503, 599),
  reason: fc.constantFrom(' OK', ' ', ' Not a \xe9 reason'),
  headers,
  framing: fc.constantFrom('length', 'chunked', 'close'),
  body,
  chunks: fc.array(chunkStyle, { minLength: 1, maxLength: 6 }),
  trailers: headers,
  connection,
  keepAlive,
});
type Parts = typeof parts extends fc.Arbitrary<infer Given> ? Given : never;

/** A valid response and what it says. */
export const responses: fc.Arbitrary<GeneratedResponse> = parts.map(toResponse);

function toResponse(given: Parts): GeneratedResponse {
  const hasBody = given.status !== 204 && given.status !== 304;
  // HTTP/1.0 has no chunks.
  const framing = given.framing === 'chunked' && given.minor === 0 ? 'close' : given.framing;
  const content = hasBody ? given.body : '';
  const lines = [...given.headers];
  if (given.connection !== null) lines.push(toLine('Connection', given.connection));
  if (given.keepAlive !== null)
    lines.push(toLine('Keep-Alive', `max=9, timeout=${given.keepAlive}`));
  // A 304 states the length of the body that it leaves out.
  if (framing === 'length' && given.status !== 204)
    lines.unshift(toLine('Content-Length', String(given.body.length)));
  if (framing === 'chunked' && hasBody) lines.push(toLine('Transfer-Encoding', 'chunked'));
  const isChunked = framing === 'chunked' && hasBody;
  const framed = isChunked ? toChunks(content, given.chunks, given.trailers) : content;
  const isKept =
    given.minor === 1
      ? given.connection?.toLowerCase() !== 'close'
      : given.connection?.toLowerCase() === 'keep-alive';
  const statusLine = `HTTP/1.${given.minor} ${given.status}${given.reason}`;
  return {
    text: `${given.early}${statusLine}\r\n${toText(lines)}\r\n${framed}`,
    status: given.status,
    headers: toHeaders(lines),
    body: content,
    isReusable: isKept && !(framing === 'close' && hasBody),
    keepAliveMs: given.keepAlive === null ? null : given.keepAlive * 1000,
  };
}

const toLine = (name: string, value: string): HeaderLine => ({
  name,
  value,
  before: ' ',
  after: '',
});

const toText = (lines: HeaderLine[]) =>
  lines.map(({ name, before, value, after }) => `${name}:${before}${value}${after}\r\n`).join('');

function toHeaders(lines: HeaderLine[]): Record<string, string> {
  const joined = new Map<string, string>();
  for (const { name, value } of lines) {
    const key = name.toLowerCase();
    const earlier = joined.get(key);
    joined.set(key, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  return Object.fromEntries(joined);
}

function toChunks(content: string, styles: ChunkStyle[], trailers: HeaderLine[]): string {
  let text = '';
  let at = 0;
  for (let index = 0; at < content.length; index++) {
    const style = styles[index % styles.length] as ChunkStyle;
    const chunk = content.slice(at, at + style.bytes);
    text += `${toSize(chunk.length, style)}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  return `${text}${toSize(0, styles[0] as ChunkStyle)}\r\n${toText(trailers)}\r\n`;
}

function toSize(bytes: number, { zeros, isUpper, extensions }: ChunkStyle): string {
  const digits = bytes.toString(16);
  return `${zeros}${isUpper ? digits.toUpperCase() : digits}${extensions}`;
}

/** Where to cut a text into packets. */
export const cuts = fc.array(fc.nat(), { maxLength: 12 });

/** Cuts a text at these places, each modulo its length. No packet is empty. */
export function cutPackets(text: string, places: number[]): string[] {
  const sorted = places.map((place) => place % (text.length + 1)).sort((a, b) => a - b);
  const ends = [...sorted, text.length];
  return ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end)).filter(Boolean);
}

/** Bytes and lines that change how a response is framed. */
const inserted = fc.constantFrom(
  ...['\r', '\n', '\r\n', '\0', ' ', '\t', ':', ';', ',', '0', '+', '0x', '\x0b', '\xa0'],
  ...['Content-Length: 3\r\n', 'content-length:0\r\n', 'Transfer-Encoding: chunked\r\n'],
  ...['transfer-encoding: identity\r\n', 'HTTP/1.1 200 OK\r\n', '0\r\n\r\n', ' folded\r\n'],
);

const mutation = fc.oneof(
  fc.record({ kind: fc.constant('truncate' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), bit: fc.nat(7) }),
  fc.record({
    kind: fc.constant('delete' as const),
    at: fc.nat(),
    bytes: fc.integer({ min: 1, max: 8 }),
  }),
  fc.record({
    kind: fc.constant('double' as const),
    at: fc.nat(),
    bytes: fc.integer({ min: 1, max: 40 }),
  }),
  fc.record({
    kind: fc.constant('insert' as const),
    at: fc.nat(),
    text: inserted,
    after: fc.constantFrom('', '\r\n', ';', ':'),
  }),
);
type Mutation = typeof mutation extends fc.Arbitrary<infer Given> ? Given : never;

/** The text of a response with one to three mutations. Some mutants are still valid. */
export const mutants: fc.Arbitrary<string> = fc
  .tuple(responses, fc.array(mutation, { minLength: 1, maxLength: 3 }))
  .map(([{ text }, mutations]) => mutations.reduce(mutate, text));

function mutate(text: string, change: Mutation): string {
  if (text === '') return text;
  let at = change.at % text.length;
  // After a line's end it becomes a header, after a semicolon a chunk extension.
  if (change.kind === 'insert') at = text.indexOf(change.after, at) + change.after.length;
  const [start, rest] = [text.slice(0, at), text.slice(at)];
  if (change.kind === 'insert') return `${start}${change.text}${rest}`;
  if (change.kind === 'truncate') return start;
  if (change.kind === 'delete') return `${start}${rest.slice(change.bytes)}`;
  if (change.kind === 'double') return `${start}${rest.slice(0, change.bytes)}${rest}`;
  return `${start}${String.fromCharCode(rest.charCodeAt(0) ^ (1 << change.bit))}${rest.slice(1)}`;
}
