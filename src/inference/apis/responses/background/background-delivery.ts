// Where the stream of a background response goes: into a buffer, from which its events are written to the database.

import type { HeaderList } from '#http/response-headers.ts';
import type { EventStream } from '#http/sse.ts';
import type { ResponseObject } from '#inference/apis/responses/schema.ts';
import type { Delivery } from '#inference/delivery.ts';
import { countEvents, type EventBatch } from './run-rows.ts';

/** Bytes above which the engine has to wait until events are written. */
const maxBufferedBytes = 1_048_576;

export class BackgroundDelivery implements Delivery, EventStream {
  /** Why the response failed before its stream began. */
  error: ResponseObject['error'] = null;
  readonly #controller = new AbortController();
  /** Sequence number of the first buffered event. */
  #first = 0;
  #events = '';
  #drained: PromiseWithResolvers<void> | null = null;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
    this.#drained?.resolve();
  }

  /** The events that are not written yet. */
  peek(): EventBatch {
    return { first: this.#first, events: this.#events };
  }

  /** Forgets events that were written. */
  drop({ events }: EventBatch): void {
    this.#first += countEvents(events);
    this.#events = this.#events.slice(events.length);
    this.#drained?.resolve();
    this.#drained = null;
  }

  openStream(): EventStream {
    return this;
  }

  pass(events: string): Promise<void> | undefined {
    this.#events += events;
    if (this.#events.length < maxBufferedBytes || this.signal.aborted) return undefined;
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  send(): never {
    throw new Error('a background response is a stream of the API’s own events');
  }

  sendWritten(): never {
    return this.send();
  }

  end(): void {}

  fail(_status: number, _headers: HeaderList, body: unknown): void {
    const { code, type, message } = (body as { error: Record<string, string | null> }).error;
    this.error = { code: code ?? type ?? 'server_error', message: message ?? '' };
  }
}
