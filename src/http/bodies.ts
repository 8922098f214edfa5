// The bodies of a Fastify scope: read within bounds, admitted first where they are large, parsed here or where
// that does not block the event loop.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseJson } from './body.ts';
import { largeBytes, type Received, readBody } from './body-reader.ts';
import type { Lease } from './body-room.ts';
import { allowLongBody } from './upload-timeout.ts';

export interface BodyRules {
  maxBytes: number;
  /** Parse JSON whatever the content type says, as some APIs' clients need. */
  anyContentType: boolean;
  /** JSON values in a body: 5,000 if not set. */
  maxValues?: number;
  /** Only where bodies may be large. */
  large?: LargeBodies;
}

export interface LargeBodies {
  /** Called before a body over 256 KiB is read. Waits until it may be, or rejects. */
  admit(request: FastifyRequest, bytes: number, signal: AbortSignal): Promise<Lease>;
  /** Parses what would block the event loop for long. Null leaves a body to the event loop. */
  parse(request: FastifyRequest, received: Received): Promise<unknown> | null;
}

export interface Bodies {
  /** To be called of each request before its body is read. */
  expect(request: FastifyRequest, reply: FastifyReply): void;
  /** A content type parser of Fastify's. */
  parse(request: FastifyRequest, payload: IncomingMessage, done: Done): void;
  /** Bytes of the body of a request that was read. */
  lengthOf(request: FastifyRequest): number;
  /** It was refused before its end. */
  isUnread(request: FastifyRequest): boolean;
}

type Done = (error: Error | null, body?: unknown) => void;

/** More than any request has to an API of commands. */
const fewValues = 5_000;

export function createBodies({ maxBytes, maxValues = fewValues, large }: BodyRules): Bodies {
  /** Of requests that may have a large body. */
  const responses = new WeakMap<FastifyRequest, ServerResponse>();
  /** Of bodies that came in chunks. */
  const lengths = new WeakMap<FastifyRequest, number>();
  const unread = new WeakSet<FastifyRequest>();

  /** The room is taken until the response is over: until then the body is in memory in one form or another. */
  async function admit(request: FastifyRequest, bytes: number, signal: AbortSignal) {
    // The reader has a time limit of its own, which begins once the body is admitted.
    allowLongBody(request.raw);
    const lease = await (large as LargeBodies).admit(request, bytes, signal);
    const response = responses.get(request);
    if (response === undefined || response.closed) lease.leave();
    else response.once('close', () => lease.leave());
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

/** Throws nothing: what `done` throws is not the body's fault. */
function tryParse(bytes: Buffer): [error: Error | null, body?: unknown] {
  try {
    return [null, parseJson(bytes)];
  } catch (error) {
    return [error as Error];
  }
}

/** Null for a body in chunks. Node refuses what is no number. */
function toLength({ headers }: FastifyRequest): number | null {
  const length = headers['content-length'];
  return length === undefined ? null : Number(length);
}

const discardMs = 10_000;

/**
 * Reads on without keeping anything: most clients read an answer only after their last byte, and closing on them
 * earlier is a broken pipe there. A client that does not come to its end is cut off.
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
