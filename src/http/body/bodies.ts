// Reads and parses the bodies of a Fastify scope within bounds. Large ones are admitted before they are read, and
// parsed where that does not block the event loop.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { onClosed } from '#http/client-disconnect.ts';
import { parseJson } from './json.ts';
import { largeBytes, type Received, readBody } from './reader.ts';
import type { Lease } from './room.ts';
import { allowLongBody } from './upload-timeout.ts';

export interface BodyRules {
  maxBytes: number;
  /** Parses JSON whatever the content type says, as clients of some APIs need. */
  anyContentType: boolean;
  /** Maximum number of JSON values in a body. Default: 5,000. */
  maxValues?: number;
  /** Undefined if no body of the scope may be large. */
  large?: LargeBodies;
}

export interface LargeBodies {
  /** Called before a body over 256 KiB is read. Resolves when it may be read; rejects with a Refusal. */
  admit(request: FastifyRequest, bytes: number, signal: AbortSignal): Promise<Lease>;
  /** Parses a body off the event loop. Returns null if the body is cheap to parse on it. */
  parse(request: FastifyRequest, received: Received): Promise<unknown> | null;
}

export interface Bodies {
  /** Must be called for each request before its body is read. */
  expect(request: FastifyRequest, reply: FastifyReply): void;
  /** A content type parser for Fastify. */
  parse(request: FastifyRequest, payload: IncomingMessage, done: Done): void;
  /** The length in bytes of a body that was read. */
  lengthOf(request: FastifyRequest): number;
  /** True if the request was refused before the end of its body. */
  isUnread(request: FastifyRequest): boolean;
}

type Done = (error: Error | null, body?: unknown) => void;

/** More values than any request to the cloud API or the dashboard's API has. */
const defaultMaxValues = 5_000;

export function createBodies({ maxBytes, maxValues = defaultMaxValues, large }: BodyRules): Bodies {
  /** The responses of requests that may have a large body. */
  const responses = new WeakMap<FastifyRequest, ServerResponse>();
  /** The lengths of bodies that came in chunks. */
  const lengths = new WeakMap<FastifyRequest, number>();
  const unread = new WeakSet<FastifyRequest>();

  /** Holds room until the response ends: until then the body is in memory in one form or another. */
  async function admit(request: FastifyRequest, bytes: number, signal: AbortSignal) {
    // The reader has its own upload timeout, which starts when the body is admitted.
    allowLongBody(request.raw);
    const lease = await (large as LargeBodies).admit(request, bytes, signal);
    const response = responses.get(request);
    if (response === undefined) lease.leave();
    else onClosed(response, () => lease.leave());
    return lease;
  }

  function parse(request: FastifyRequest, payload: IncomingMessage, done: Done): void {
    const declaredBytes = toLength(request);
    const mayBeLarge = large !== undefined && (declaredBytes ?? maxBytes) > largeBytes;
    const rules = {
      maxBytes,
      maxValues,
      declaredBytes,
      admit: mayBeLarge
        ? (bytes: number, signal: AbortSignal) => admit(request, bytes, signal)
        : null,
    };
    readBody(payload, rules, (error, received) => {
      if (received === undefined) {
        if (!request.raw.complete) unread.add(request);
        return done(error);
      }
      if (declaredBytes === null) lengths.set(request, received.bytes.length);
      const parsing = large?.parse(request, received) ?? null;
      if (parsing !== null) parsing.then((body) => done(null, body), done);
      else done(...tryParse(received.bytes));
    });
  }

  return {
    expect(request, { raw }) {
      if (large !== undefined && (toLength(request) ?? maxBytes) > largeBytes) {
        responses.set(request, raw);
      }
    },
    parse,
    lengthOf: (request) => toLength(request) ?? lengths.get(request) ?? 0,
    isUnread: (request) => unread.has(request),
  };
}

/** Returns the error instead of throwing it, so that an error thrown by `done` is not taken for the body's. */
function tryParse(bytes: Buffer): [error: Error | null, body?: unknown] {
  try {
    return [null, parseJson(bytes)];
  } catch (error) {
    return [error as Error];
  }
}

/** Null for a chunked body. Node refuses a content-length that is not a number. */
function toLength({ headers }: FastifyRequest): number | null {
  const length = headers['content-length'];
  return length === undefined ? null : Number(length);
}

const discardMs = 10_000;

/**
 * Reads the rest of a body and discards it. Most clients read a response only after they have sent everything,
 * and would see a broken pipe if the connection were closed earlier. Bounded in bytes and time.
 */
export function discard(raw: IncomingMessage, maxBytes: number): void {
  let left = maxBytes * 4;
  const cut = () => raw.socket.destroy();
  const timer = setTimeout(cut, discardMs);
  raw.on('data', ({ length }: Buffer) => {
    left -= length;
    if (left < 0) cut();
  });
  raw.once('close', () => clearTimeout(timer)).once('end', () => clearTimeout(timer));
  raw.resume();
}
