// Reads a request's body within its bounds. A declared length over the limit is refused before a byte is read;
// values and depth are counted as the bytes arrive; a large body is read only once it is admitted.

import type { Readable } from 'node:stream';
import { invalidJson, Refusal, tooLarge } from '#lib/errors.ts';
import { JsonGauge } from './json.ts';
import type { Lease } from './room.ts';

/** A body over this many bytes is large: it is read only once it is admitted. */
export const largeBytes = 262_144;

/** Upload timeout of an admitted body. The time it waited for admission does not count. */
const uploadMs = 120_000;

export interface Received {
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

type Done = (error: Error | null, received?: Received) => void;

/** Calls `done` once. After an error the rest of the body is left unread. */
export function readBody(payload: Readable, rules: ReadRules, done: Done): void {
  const { maxBytes, declaredBytes } = rules;
  if (declaredBytes !== null && declaredBytes > maxBytes) done(tooLarge(maxBytes));
  else new BodyReader(payload, rules, done).start();
}

class BodyReader {
  readonly #payload: Readable;
  readonly #rules: ReadRules;
  readonly #done: Done;
  readonly #gauge: JsonGauge;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #lease: Lease | null = null;
  /** Set while the body waits for admission. */
  #waiting: AbortController | null = null;
  #deadline: NodeJS.Timeout | null = null;

  constructor(payload: Readable, rules: ReadRules, done: Done) {
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
