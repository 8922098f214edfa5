// Tells those who work on a request when its client leaves before the answer is whole. Fastify's own
// request.signal can't be used: it fires as soon as the body of a POST was read.

import type { ServerResponse } from 'node:http';

/** What is needed of an AbortSignal, which has it all; but making and hearing one costs a request some 5 µs. */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class ClientGone implements Cancellation {
  aborted = false;
  reason: unknown = undefined;
  #listeners: (() => void)[] = [];

  constructor(response: ServerResponse) {
    if (response.destroyed) this.#abort();
    else response.on('close', () => response.writableFinished || this.#abort());
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }

  #abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = new Error('the client went away');
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** For what takes nothing but an AbortSignal. */
export function toSignal(cancellation: Cancellation): AbortSignal {
  if (cancellation instanceof AbortSignal) return cancellation;
  const controller = new AbortController();
  const abort = () => controller.abort(cancellation.reason);
  if (cancellation.aborted) abort();
  else cancellation.addEventListener('abort', abort);
  return controller.signal;
}
