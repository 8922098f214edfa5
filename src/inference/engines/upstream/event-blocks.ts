// A streamed answer between the socket and whoever reads it: all events of one turn are handed on at
// once, the server is held back while the reader is slow, and how the stream ended is told last.

import type { IncomingHttpHeaders } from 'node:http';
import { atTurnEnd } from '#http/client/poll-batch.ts';
import type { Call, ResponseStream, TakeItem, Task, WireEvents } from '#inference/engine.ts';
import { describeType } from './answer.ts';
import { BoundedBody } from './buffered-response.ts';
import type { Exchange, Receiver } from './connection.ts';
import type { Shapes } from './envelope.ts';
import { toFailure, unavailable } from './failures.ts';
import type { GeneratedCount } from './generated-text.ts';
import { Rewriter, type StreamCounting } from './rewriter.ts';
import { generatedOnly } from './usage.ts';
import type { UsageCheck } from './usage-check.ts';

/** Bytes that may wait for the end of a turn, until which a socket may bring megabytes. */
const mostWaiting = 64 * 1024;
/** Unread bytes from which on the server is held back; more than may wait, so that there is something to read. */
const highWater = 512 * 1024;
const maxRefusalBytes = 256 * 1024;
const progressMs = 500;

/** An answer that is no stream. */
interface Refusal {
  status: number;
  headers: IncomingHttpHeaders;
  body: BoundedBody;
}

export class EventBlocks implements Receiver, ResponseStream, AsyncIterableIterator<WireEvents> {
  readonly #task: Task;
  readonly #call: Call;
  readonly #generated: GeneratedCount;
  readonly #check: UsageCheck;
  readonly #rewriter: Rewriter;
  readonly #onTurnEnd = () => {
    this.#willLook = false;
    this.#flush();
    if (this.#hasEnded) this.#finish();
  };
  #exchange: Exchange | null = null;
  #refusal: Refusal | null = null;
  /** What came in one turn, looked at together; a character for each byte. */
  #received: WireEvents = '';
  #ready: WireEvents = '';
  #isPaused = false;
  #willLook = false;
  /** The server has said all it had to say. */
  #hasEnded = false;
  /** `counting` until it is known what was generated. */
  #state: 'open' | 'counting' | 'ended' | 'failed' = 'open';
  #failure: unknown = null;
  /** The reader has been told how it ended. */
  #isOver = false;
  #wake: (() => void) | null = null;
  #tellAt = performance.now() + progressMs;

  constructor(task: Task, call: Call, counting: StreamCounting, shapes: Shapes) {
    this.#task = task;
    this.#call = call;
    this.#generated = counting.generated;
    this.#check = counting.check;
    this.#rewriter = new Rewriter(task, call, counting, shapes);
  }

  sent(): void {
    this.#call.onWork?.(true);
  }

  started(exchange: Exchange, status: number, headers: IncomingHttpHeaders): void {
    this.#exchange = exchange;
    // Servers name the type of a stream in several ways, but these are none.
    const isOther = /json|html/.test(headers['content-type'] ?? '');
    if (status === 200 && !isOther) return;
    this.#refusal = { status, headers, body: new BoundedBody(maxRefusalBytes) };
    exchange.progress();
  }

  received(exchange: Exchange, bytes: Buffer): void {
    if (this.#refusal !== null) {
      const isSmall = this.#refusal.body.add(bytes);
      if (!isSmall) exchange.stop(unavailable(`answered with status ${this.#refusal.status}`));
      return;
    }
    // After its end a server may say what it likes, for as long as an idle one may keep its connection.
    if (this.#state !== 'open') return;
    this.#received += bytes.toString('latin1');
    if (this.#received.length >= mostWaiting) this.#flush();
    else this.#lookLater();
    if (this.#received.length + this.#ready.length > highWater && !this.#isPaused) {
      this.#isPaused = true;
      exchange.pause();
    }
  }

  ended(): void {
    this.#hasEnded = true;
    this.#lookLater();
  }

  failed(error: unknown): void {
    this.#flush();
    this.#settle(() => error, true);
  }

  /** Resolves when there is something to read; throws when there never will be. */
  begun(): Promise<this> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#call;
      const wake = () => {
        if (signal.aborted) reject(this.#close(signal.reason));
        else if (this.#ready !== '') resolve(this);
        else if (this.#hasSettled()) reject(this.#close(this.#failure));
        else this.#wake = wake;
      };
      wake();
    });
  }

  /** For what must look at each block; most streams are passed on by `forEach`. */
  next(): Promise<IteratorResult<WireEvents>> {
    return new Promise((resolve, reject) => {
      if (this.#tell(resolve, reject)) return;
      this.#wake = () => this.#tell(resolve, reject);
    });
  }

  forEach(take: TakeItem): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        try {
          while (this.#ready !== '' && !this.#isOver && !this.#call.signal.aborted) {
            const full = take(this.#take());
            if (full === undefined) continue;
            full.then(wake, reject);
            return;
          }
          const isTold = this.#tell(() => resolve(), reject);
          if (!isTold) this.#wake = wake;
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

  #leave(): void {
    this.#close(null);
    this.#exchange?.stop(unavailable('is not listened to'));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #lookLater(): void {
    if (this.#willLook) return;
    this.#willLook = true;
    atTurnEnd(this.#onTurnEnd);
  }

  #flush(): void {
    const bytes = this.#received;
    if (bytes === '' || this.#state !== 'open') return;
    this.#received = '';
    const events = this.#rewriter.push(bytes);
    if (events !== '') {
      this.#ready += events;
      if (!this.#isPaused) this.#exchange?.progress();
      this.#wakeReader();
    }
    this.#tellProgress();
    if (!this.#rewriter.isDone) return;
    const failure = this.#rewriter.failure;
    this.#settle(unfinished);
    // Its answer is not read to the end.
    if (failure !== null) this.#exchange?.stop(failure);
  }

  /** Most servers say what was used only at the end, and nobody may be there to hear it. */
  #tellProgress(): void {
    const now = performance.now();
    if (now < this.#tellAt || this.#rewriter.usage !== null) return;
    this.#tellAt = now + progressMs;
    const tokens = this.#generated.soFar();
    if (tokens > 0) this.#call.onUsage?.(generatedOnly(tokens));
  }

  #finish(): void {
    const refusal = this.#refusal;
    if (refusal === null && this.#state === 'open') this.#ready += this.#rewriter.end();
    this.#settle(refusal === null ? unfinished : () => this.#whyRefused(refusal));
  }

  /** Takes what stands against it as its end, unless every choice has ended. */
  #settle(otherwise: () => unknown, isCut = false): void {
    if (this.#state !== 'open') return;
    const { signal } = this.#call;
    const failure = this.#rewriter.failure;
    const isWhole = failure === null && this.#rewriter.hasFinished(isCut) && !signal.aborted;
    this.#failure = isWhole ? null : (failure ?? otherwise());
    this.#state = 'counting';
    // What was generated counts, however it ended. Who was left by the client, or is done, can be asked.
    const isThere = (signal.aborted || isWhole) && !this.#check.isDistrusted;
    const tokens = this.#rewriter.usage === null ? this.#generated.total(isThere) : null;
    this.#generated.forget();
    if (tokens instanceof Promise) tokens.then((counted) => this.#settled(isWhole, counted));
    else this.#settled(isWhole, tokens);
  }

  /** Null for tokens that the server has counted. */
  #settled(isWhole: boolean, tokens: number | null): void {
    if (tokens !== null && (tokens > 0 || isWhole))
      this.#call.onUsage?.(generatedOnly(this.#check.cap(tokens)));
    this.#state = isWhole ? 'ended' : 'failed';
    this.#wakeReader();
  }

  #hasSettled(): boolean {
    return this.#state === 'ended' || this.#state === 'failed';
  }

  #whyRefused({ status, headers, body }: Refusal): unknown {
    const text = body.text();
    if (status !== 200 || /^\s*\{\s*"error"/.test(text))
      return toFailure(status, headers, text, this.#task);
    return unavailable(`answered with ${describeType(headers)} instead of a stream`);
  }

  #take(): WireEvents {
    const block = this.#ready;
    this.#ready = '';
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#exchange?.resume();
    }
    return block;
  }

  /** Gives what there is to give; false when that is nothing yet. */
  #tell(
    resolve: (result: IteratorResult<WireEvents>) => void,
    reject: (error: unknown) => void,
  ): boolean {
    const { signal } = this.#call;
    if (this.#isOver) resolve({ value: undefined, done: true });
    // Whoever hears of its end may ask what was used.
    else if (signal.aborted && this.#state === 'counting') return false;
    else if (signal.aborted) reject(this.#close(signal.reason));
    else if (this.#ready !== '') resolve({ value: this.#take(), done: false });
    else if (this.#state === 'failed') reject(this.#close(this.#failure));
    else if (this.#state === 'ended') resolve({ value: this.#close(undefined), done: true });
    else return false;
    return true;
  }

  /** Told once; afterwards the iteration is over. */
  #close<Told>(told: Told): Told {
    this.#isOver = true;
    this.#ready = '';
    return told;
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}

const unfinished = () => unavailable('ended its answer without a finish reason');
