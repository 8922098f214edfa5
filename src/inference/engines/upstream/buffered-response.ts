// An answer that is read as a whole before anything is made of it.

import type { IncomingHttpHeaders } from 'node:http';
import { fromBytes } from '#lib/memory/byte-string.ts';
import type { Connection, Exchange, Receiver, Send } from './connection.ts';
import { unavailable } from './failures.ts';

/** Larger ones are kept as bytes, to be parsed in a thread: parsing and writing this many takes some 4 ms. */
export const maxInlineBytes = 256 * 1024;
export const maxAnswerBytes = 64 * 1024 * 1024;
/** Of a response with another status than 200, which is always parsed on the event loop. */
const maxErrorBytes = 1024 * 1024;

export class WholeAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly #body: BoundedBody;

  constructor(status: number, headers: IncomingHttpHeaders, body: BoundedBody) {
    this.status = status;
    this.headers = headers;
    this.#body = body;
  }

  get size(): number {
    return this.#body.size;
  }

  get text(): string {
    return this.#body.text();
  }

  /** The bytes of a large one, in order; null of others. */
  get blocks(): Uint8Array<ArrayBuffer>[] | null {
    return this.#body.blocks();
  }
}

/** Throws EngineError when none came, or the signal's reason. */
export function ask(
  connection: Connection,
  what: Send,
  onWork?: (isAtWork: boolean) => void,
): Promise<WholeAnswer> {
  return new Promise((resolve, reject) => {
    if (what.signal.aborted) reject(what.signal.reason);
    else connection.send(what, new WholeReceiver(resolve, reject, onWork));
  });
}

class WholeReceiver implements Receiver {
  readonly #resolve: (answer: WholeAnswer) => void;
  readonly #body = new BoundedBody(maxAnswerBytes);
  readonly failed: (error: unknown) => void;
  readonly #onWork: ((isAtWork: boolean) => void) | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};

  constructor(
    resolve: (answer: WholeAnswer) => void,
    reject: (error: unknown) => void,
    onWork: ((isAtWork: boolean) => void) | undefined,
  ) {
    this.#resolve = resolve;
    this.failed = reject;
    this.#onWork = onWork;
  }

  sent(): void {
    this.#onWork?.(true);
  }

  started(exchange: Exchange, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
    exchange.progress();
  }

  received(exchange: Exchange, bytes: Buffer): void {
    exchange.progress();
    const isSmall = this.#body.add(bytes);
    if (this.#status !== 200 && this.#body.size > maxErrorBytes)
      exchange.stop(unavailable(`answered with status ${this.#status}`));
    else if (!isSmall) exchange.stop(unavailable('sent an answer that is too large'));
  }

  ended(): void {
    this.#resolve(new WholeAnswer(this.#status, this.#headers, this.#body));
  }
}

export class BoundedBody {
  readonly #maxBytes: number;
  /** A character for each byte, while there are few. */
  #bytes = '';
  #blocks: ByteBlocks | null = null;
  size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** False when it is too large. */
  add(bytes: Buffer): boolean {
    this.size += bytes.length;
    if (this.size > this.#maxBytes) {
      this.#bytes = '';
      this.#blocks = null;
      return false;
    }
    if (this.size <= maxInlineBytes) this.#bytes += bytes.toString('latin1');
    else {
      this.#blocks ??= new ByteBlocks(Buffer.from(this.#bytes, 'latin1'));
      this.#bytes = '';
      this.#blocks.add(bytes);
    }
    return true;
  }

  text(): string {
    return this.#blocks === null
      ? fromBytes(this.#bytes)
      : Buffer.concat(this.#blocks.all()).toString('utf8');
  }

  blocks(): Uint8Array<ArrayBuffer>[] | null {
    return this.#blocks?.all() ?? null;
  }
}

const blockBytes = 1024 * 1024;

/** Bytes in blocks that can be transferred to a thread. A server may send them one by one. */
class ByteBlocks {
  readonly #full: Uint8Array<ArrayBuffer>[] = [];
  #last = new Uint8Array(blockBytes);
  #used = 0;

  constructor(first: Buffer) {
    this.add(first);
  }

  add(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#used === blockBytes) {
        this.#full.push(this.#last);
        this.#last = new Uint8Array(blockBytes);
        this.#used = 0;
      }
      const part = bytes.subarray(at, at + blockBytes - this.#used);
      this.#last.set(part, this.#used);
      this.#used += part.length;
      at += part.length;
    }
  }

  all(): Uint8Array<ArrayBuffer>[] {
    return [...this.#full, this.#last.subarray(0, this.#used)];
  }
}
