// Receives a streamed response from an upstream server: rewrites its events into a queue, applies backpressure while
// the reader is slow, and counts the tokens before the reader learns how the stream ended.

import type { IncomingHttpHeaders } from 'node:http';
import type { ResponseHandler } from '#http/client/response-handler.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import type { Call, ResponseStream, TakeItem, Task } from '#inference/engine.ts';
import {
  describeType,
  toFailure,
  unavailable,
  unreadable,
} from '#inference/engines/upstream/failures.ts';
import { BoundedBody } from '#inference/engines/upstream/plain/buffered-response.ts';
import type { UpstreamRequest } from '#inference/engines/upstream/upstream-client.ts';
import { generatedOnly } from '#inference/engines/upstream/usage.ts';
import type { WireEvents } from '#inference/wire/response.ts';
import { EventRewriter, type StreamCounting } from './event-rewriter.ts';
import type { EventTemplates } from './event-template.ts';

/** Unread bytes from which on the server is paused. */
const maxUnreadBytes = 512 * 1024;
const maxRefusalBytes = 256 * 1024;
/** How often the tokens so far are reported. */
const reportIntervalMs = 500;

/** A response that is not a stream. */
interface Refusal {
  readonly status: number;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly body: BoundedBody;
}

export class StreamReceiver implements ResponseHandler<UpstreamRequest>, EventProducer {
  readonly queue: EventQueue;
  readonly #task: Task;
  readonly #call: Call;
  readonly #counting: StreamCounting;
  readonly #rewriter: EventRewriter;
  #request: UpstreamRequest | null = null;
  #refusal: Refusal | null = null;
  /** It is known how the stream ended. The rest of the response is ignored. */
  #isSettled = false;
  #nextReportMs = performance.now() + reportIntervalMs;

  constructor(task: Task, call: Call, counting: StreamCounting, templates: EventTemplates) {
    this.queue = new EventQueue(call.signal, this);
    this.#task = task;
    this.#call = call;
    this.#counting = counting;
    this.#rewriter = new EventRewriter(task, call, counting, templates);
  }

  onSent(request: UpstreamRequest): void {
    this.#request = request;
    this.#call.onWork?.(true);
  }

  onHead(status: number, headers: Readonly<IncomingHttpHeaders>): void {
    // Servers give streams various content types, but never these.
    const isOther = /json|html/.test(headers['content-type'] ?? '');
    if (status === 200 && !isOther) return;
    this.#refusal = { status, headers, body: new BoundedBody(maxRefusalBytes) };
    this.#request?.progress();
  }

  onBody(bytes: Buffer): void {
    if (this.#refusal !== null) this.#addToRefusal(this.#refusal, bytes);
    else if (!this.#isSettled) this.#addEvents(bytes);
  }

  onEnd(): void {
    const refusal = this.#refusal;
    if (refusal === null && !this.#isSettled) this.queue.push(this.#rewriter.end());
    this.#settle(refusal === null ? unfinished : () => this.#toRefusalError(refusal));
  }

  onError(error: unknown): void {
    this.#settle(() => error, true);
  }

  onDrain(): void {
    this.#request?.resume();
  }

  onLeave(): void {
    this.#request?.stop(unavailable('lost its reader'));
  }

  #addToRefusal({ status, body }: Refusal, bytes: Buffer): void {
    if (!body.add(bytes)) this.#request?.stop(unavailable(`responded with status ${status}`));
  }

  #addEvents(bytes: Buffer): void {
    const events = this.#rewriter.push(bytes.toString('latin1'));
    if (events !== '') {
      // Comments are no progress: a server that only sends pings is stuck.
      this.#request?.progress();
      this.queue.push(events);
    }
    this.#reportProgress();
    if (this.#rewriter.isDone) {
      const { failure } = this.#rewriter;
      this.#settle(unfinished);
      if (failure !== null) this.#request?.stop(failure);
    } else if (this.queue.length > maxUnreadBytes) this.#request?.pause();
  }

  /** Most servers report usage only at the end, which a disconnecting client never reaches. */
  #reportProgress(): void {
    const now = performance.now();
    if (now < this.#nextReportMs || this.#rewriter.usage !== null) return;
    this.#nextReportMs = now + reportIntervalMs;
    const tokens = this.#counting.generated.soFar();
    if (tokens > 0) this.#call.onUsage?.(generatedOnly(tokens));
  }

  /** Ends the stream. It has failed, with `toError()` unless an event said why, if a choice has not finished. */
  #settle(toError: () => unknown, isCut = false): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { signal } = this.#call;
    const { failure, usage } = this.#rewriter;
    const isWhole = failure === null && this.#rewriter.hasFinished(isCut) && !signal.aborted;
    const error = isWhole ? null : (failure ?? toError());
    const { generated } = this.#counting;
    if (usage !== null) this.#close(isWhole, error);
    else void this.#count(isWhole).then(() => this.#close(isWhole, error));
    generated.forget();
  }

  #close(isWhole: boolean, error: unknown): void {
    if (isWhole) this.queue.end();
    else this.queue.fail(error);
  }

  /** Generated tokens count however the stream ended. A server that has not failed may be asked to count them. */
  async #count(isWhole: boolean): Promise<void> {
    const { check, generated } = this.#counting;
    const canAsk = (this.#call.signal.aborted || isWhole) && !check.isDistrusted;
    const tokens = await generated.total(canAsk);
    if (tokens > 0 || isWhole) this.#call.onUsage?.(generatedOnly(check.cap(tokens)));
  }

  #toRefusalError({ status, headers, body }: Refusal): unknown {
    const text = body.text();
    if (status !== 200 || /^\s*\{\s*"error"/.test(text))
      return toFailure(status, headers, text, this.#task);
    return unreadable(`responded with ${describeType(headers)} instead of a stream`);
  }
}

const unfinished = () => unavailable('ended its response without a finish reason');

/** The side that fills the queue. */
interface EventProducer {
  /** The reader took everything. */
  onDrain(): void;
  /** The reader left before the end. */
  onLeave(): void;
}

type Resolve = (result: IteratorResult<WireEvents>) => void;
type Reject = (error: unknown) => void;

/**
 * Events between the receiver that rewrites them and the reader that serves them. Everything that
 * is ready is handed over as one block.
 */
export class EventQueue implements ResponseStream, AsyncIterableIterator<WireEvents> {
  readonly #signal: Cancellation;
  readonly #producer: EventProducer;
  #ready: WireEvents = '';
  /** `closed` once the reader knows how the stream ended. */
  #state: 'open' | 'ended' | 'failed' | 'closed' = 'open';
  #failure: unknown = null;
  #wake: (() => void) | null = null;

  constructor(signal: Cancellation, producer: EventProducer) {
    this.#signal = signal;
    this.#producer = producer;
  }

  /** Bytes that wait for the reader. */
  get length(): number {
    return this.#ready.length;
  }

  push(events: WireEvents): void {
    if (events === '' || this.#state !== 'open') return;
    this.#ready += events;
    this.#wakeReader();
  }

  /** The stream is complete. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ended';
    this.#wakeReader();
  }

  /** The reader gets the error after the events that are ready. */
  fail(error: unknown): void {
    this.#failure = error;
    if (this.#state === 'open') this.#state = 'failed';
    this.#wakeReader();
  }

  /** Resolves when the first events are ready. Rejects if there will be none. */
  started(): Promise<this> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        const isSettled = this.#state !== 'open';
        if (this.#signal.aborted) reject(this.#close(this.#signal.reason));
        else if (this.#ready !== '') resolve(this);
        else if (isSettled) reject(this.#close(this.#failure));
        else this.#wake = wake;
      };
      wake();
    });
  }

  /** Serves readers that look at each block. Most streams are read by `forEach`. */
  next(): Promise<IteratorResult<WireEvents>> {
    return new Promise((resolve, reject) => {
      if (this.#deliver(resolve, reject)) return;
      this.#wake = () => {
        if (!this.#deliver(resolve, reject)) this.#wake = null;
      };
    });
  }

  forEach(take: TakeItem): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        try {
          while (this.#ready !== '' && !this.#signal.aborted) {
            const written = take(this.#take());
            if (written === undefined) continue;
            written.then(wake, reject);
            return;
          }
          const isDelivered = this.#deliver(() => resolve(), reject);
          if (!isDelivered) this.#wake = wake;
        } catch (error) {
          this.#leave();
          reject(error);
        }
      };
      wake();
    });
  }

  async return(): Promise<IteratorResult<WireEvents>> {
    this.#leave();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Settles a read. False if there is nothing to deliver yet. */
  #deliver(resolve: Resolve, reject: Reject): boolean {
    const { aborted, reason } = this.#signal;
    if (this.#state === 'closed') resolve({ value: undefined, done: true });
    // The tokens are counted before the reader learns of the end, because it reports them.
    else if (aborted && this.#state === 'open') return false;
    else if (aborted) reject(this.#close(reason));
    else if (this.#ready !== '') resolve({ value: this.#take(), done: false });
    else if (this.#state === 'failed') reject(this.#close(this.#failure));
    else if (this.#state === 'ended') resolve({ value: this.#close(undefined), done: true });
    else return false;
    return true;
  }

  #take(): WireEvents {
    const block = this.#ready;
    this.#ready = '';
    this.#producer.onDrain();
    return block;
  }

  #leave(): void {
    this.#close(null);
    this.#producer.onLeave();
  }

  #close<Result>(result: Result): Result {
    this.#state = 'closed';
    this.#ready = '';
    return result;
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
