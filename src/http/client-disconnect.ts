// Signals that the client left before the response was complete, or that the response must end.
// Fastify's own `request.signal` can't be used: it aborts as soon as the body of a POST was read.

import type { ServerResponse } from 'node:http';

/** The part of AbortSignal that is needed here. Creating and listening to a real one costs about 5 µs per request. */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class ClientDisconnect implements Cancellation {
  aborted = false;
  reason: unknown = undefined;
  #listeners: (() => void)[] = [];

  constructor(response: ServerResponse) {
    const leave = () => this.abort(new Error('the client disconnected'));
    if (response.destroyed) leave();
    else response.on('close', () => response.writableFinished || leave());
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

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** Converts to a real AbortSignal, for APIs that require one. */
export function toSignal(cancellation: Cancellation): AbortSignal {
  if (cancellation instanceof AbortSignal) return cancellation;
  const controller = new AbortController();
  const abort = () => controller.abort(cancellation.reason);
  if (cancellation.aborted) abort();
  else cancellation.addEventListener('abort', abort);
  return controller.signal;
}

/** Calls the listener when the response has ended or the client has left; at once if that has happened already. */
export function onClosed(response: ServerResponse, listener: () => void): void {
  if (response.closed) listener();
  else response.once('close', listener);
}
