// Reads and parses the bodies of a Fastify scope within bounds. A declared length over the limit is
// refused before a byte is read; values and depth are counted as the bytes arrive. A large body is
// read only once it is admitted, and parsed where that does not block the event loop.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { onClosed } from '#http/client-disconnect.ts';
import { invalidJson, Refusal, tooLarge } from '#lib/errors.ts';
import { JsonGauge, parseJson } from './json.ts';
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
  /** Parses a body that is large or has many values, off the event loop. Absent if that is not worth it. */
  parse?(request: FastifyRequest, bytes: Buffer): Promise<unknown>;
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

/** A body over this many bytes is large: it is read only once it is admitted. */
const largeBytes = 262_144;

/** A body with more values is parsed off the event loop, however short it is: 4,000 take up to ten milliseconds. */
const manyValues = 4_000;

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
      const { bytes, values } = received;
      const isCheap = bytes.length <= largeBytes && values <= manyValues;
      if (large?.parse === undefined || isCheap) done(...tryParse(bytes));
      else large.parse(request, bytes).then((body) => done(null, body), done);
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

/** Upload timeout of an admitted body. The time it waited for admission does not count. */
const uploadMs = 120_000;

interface Received {
  readonly bytes: Buffer;
  /** Upper bound on the number of JSON values. */
  readonly values: number;
}

export interface ReadRules {
  readonly maxBytes: number;
  readonly maxValues: number;
  /** The content-length; null for a chunked body. */
  readonly declaredBytes: number | null;
  /** Called at most once, before a large body is read. Null if no body may be large. */
  readonly admit: ((bytes: number, signal: AbortSignal) => Promise<Lease>) | null;
}

type OnRead = (error: Error | null, received?: Received) => void;

/** Calls `done` once. After an error the rest of the body is left unread. */
export function readBody(payload: Readable, rules: ReadRules, done: OnRead): void {
  const { maxBytes, declaredBytes } = rules;
  if (declaredBytes !== null && declaredBytes > maxBytes) done(tooLarge(maxBytes));
  else new BodyReader(payload, rules, done).start();
}

class BodyReader {
  readonly #payload: Readable;
  readonly #rules: ReadRules;
  readonly #done: OnRead;
  readonly #gauge: JsonGauge;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #lease: Lease | null = null;
  /** Set while the body waits for admission. */
  #waiting: AbortController | null = null;
  #deadline: NodeJS.Timeout | null = null;

  constructor(payload: Readable, rules: ReadRules, done: OnRead) {
    this.#payload = payload;
    this.#rules = rules;
    this.#done = done;
    this.#gauge = new JsonGauge(rules.maxValues);
  }

  start(): void {
    const { declaredBytes, admit } = this.#rules;
    this.#payload.once('error', this.#fail);
    // The client may leave while its key is looked up. The stream has emitted its last event then.
    if (this.#payload.destroyed) this.#fail(this.#payload.errored ?? gone());
    else if (admit !== null && (declaredBytes ?? 0) > largeBytes)
      this.#admit(declaredBytes as number);
    else this.#read();
  }

  #read(): void {
    this.#payload.on('data', this.#add).once('end', this.#finish).resume();
  }

  readonly #add = (chunk: Buffer): void => {
    try {
      this.#take(chunk);
    } catch (error) {
      this.#fail(error as Error);
    }
  };

  #take(chunk: Buffer): void {
    const { maxBytes, admit } = this.#rules;
    this.#length += chunk.length;
    if (this.#length > maxBytes) throw tooLarge(maxBytes);
    this.#gauge.add(chunk);
    this.#chunks.push(chunk);
    const isAdmitted = admit === null || this.#deadline !== null;
    if (isAdmitted || this.#length <= largeBytes) return;
    // A chunked body has no declared length, so it may grow up to the limit.
    this.#detach();
    this.#payload.pause();
    this.#admit(maxBytes);
  }

  #admit(bytes: number): void {
    const waiting = new AbortController();
    this.#waiting = waiting;
    const close = () => waiting.abort(gone());
    this.#payload.once('close', close);
    this.#rules
      .admit?.(bytes, waiting.signal)
      .finally(() => {
        this.#payload.off('close', close);
        this.#waiting = null;
      })
      .then((lease) => {
        this.#lease = lease;
        if (this.#payload.destroyed) throw this.#payload.errored ?? gone();
        this.#deadline = setTimeout(() => this.#fail(timedOut()), uploadMs);
        this.#read();
      })
      .catch(this.#fail);
  }

  readonly #finish = (): void => {
    const { declaredBytes } = this.#rules;
    this.#end();
    if (declaredBytes !== null && declaredBytes !== this.#length) {
      this.#done(invalidJson('it is shorter or longer than its content-length'));
      return;
    }
    this.#lease?.shrink(this.#length);
    const bytes = Buffer.concat(this.#chunks, this.#length);
    this.#done(null, { bytes, values: this.#gauge.values });
  };

  readonly #fail = (error: Error): void => {
    // The client left while its body waited for admission. Aborting the wait calls this function again.
    if (this.#waiting !== null) {
      this.#waiting.abort(error);
      return;
    }
    this.#end();
    this.#payload.pause();
    this.#done(error);
  };

  #end(): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#detach();
    this.#payload.off('error', this.#fail);
  }

  #detach(): void {
    this.#payload.off('data', this.#add).off('end', this.#finish);
  }
}

const gone = () => invalidJson('it ended before it was complete');

const timedOut = () => new Refusal('timed_out', 'The request body did not arrive in time.');
