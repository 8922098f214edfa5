// An answer that is read as a whole before anything is made of it.

import type { IncomingHttpHeaders } from 'node:http';
import { fromBytes } from '#lib/memory/byte-string.ts';
import type { Connection, Exchange, Receiver, Send } from './connection.ts';
import { unavailable } from './failures.ts';

export interface WholeAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export const maxAnswerBytes = 64 * 1024 * 1024;

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
    if (!this.#body.add(bytes)) exchange.stop(unavailable('sent an answer that is too large'));
  }

  ended(): void {
    this.#resolve({ status: this.#status, headers: this.#headers, text: this.#body.text() });
  }
}

export class BoundedBody {
  readonly #maxBytes: number;
  /** A character for each byte. */
  #bytes = '';

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** False when it is too large. */
  add(bytes: Buffer): boolean {
    const isSmall = this.#bytes.length + bytes.length <= this.#maxBytes;
    this.#bytes = isSmall ? this.#bytes + bytes.toString('latin1') : '';
    return isSmall;
  }

  text(): string {
    return fromBytes(this.#bytes);
  }
}
