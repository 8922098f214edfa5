// The requests that an engine in this process has at once, within a bound. Each ends by itself, by the
// abort of its signal, or with the engine.

import type { Cancellation } from '#http/client-disconnect.ts';
import { EngineError } from '#inference/engine.ts';

export interface OpenRequest {
  /** True once it has ended or its signal has aborted. */
  readonly isOver: boolean;
  /** Cancels its work in the model. */
  cancel: () => void;
  fail(error: unknown): void;
  /** Must be called at the end. May be repeated. */
  leave(): void;
}

export interface OpenRequests {
  /** `failed` is called at most once. Throws EngineError, and the reason of an aborted signal. */
  enter(signal: Cancellation, failed: (error: unknown) => void): OpenRequest;
  areOpen(): boolean;
  /** Fails them, and refuses further ones. */
  close(): void;
}

export function createOpenRequests(name: string, maxRequests: number): OpenRequests {
  const open = new Set<OpenRequest>();
  let isClosed = false;
  const shutDown = () => new EngineError('unavailable', `${name} has been shut down.`);

  function enter(signal: Cancellation, failed: (error: unknown) => void): OpenRequest {
    signal.throwIfAborted();
    if (isClosed) throw shutDown();
    if (open.size >= maxRequests)
      throw new EngineError('overloaded', `${name} has ${maxRequests} requests already.`);
    const request: OpenRequest = {
      get isOver() {
        return !open.has(request);
      },
      cancel() {},
      fail(error) {
        if (request.isOver) return;
        request.leave();
        failed(error);
      },
      leave() {
        if (!open.delete(request)) return;
        signal.removeEventListener('abort', abort);
        request.cancel();
      },
    };
    const abort = () => request.fail(signal.reason);
    open.add(request);
    signal.addEventListener('abort', abort);
    return request;
  }

  return {
    enter,
    areOpen: () => open.size > 0,
    close() {
      isClosed = true;
      for (const request of [...open]) request.fail(shutDown());
    },
  };
}
