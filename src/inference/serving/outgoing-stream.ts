// The stream that a client receives, in its API's format. It is opened once the first chunk exists or, if the format
// wants that, after a while without one; then it is kept alive until there is something to send.

import { type HeaderList, mergeHeaders } from '#http/response-headers.ts';
import { type EventStream, eventStreamHeaders } from '#http/sse.ts';
import { isUnwanted } from '#inference/delivery.ts';
import type { Envelope } from '#inference/engine.ts';
import type { InferenceError } from '#inference/errors.ts';
import { type InferenceRequest, withElapsed } from '#inference/request.ts';
import type { EngineChunk, Usage, WireEvents } from '#inference/wire/response.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import type { RequestAccount } from './request-accounting.ts';
import type { ResponseFormat, StreamFormat } from './response-format.ts';

export interface StreamedRequest {
  readonly request: InferenceRequest;
  readonly format: ResponseFormat;
  readonly headers: HeaderList;
  readonly account: RequestAccount;
}

const progressEveryMs = 500;

export class OutgoingStream {
  readonly envelope: Envelope;
  /** Absent if the format doesn't send them. */
  readonly takeRest: StreamFormat['takeRest'];
  readonly #streamed: StreamedRequest;
  readonly #format: StreamFormat;
  readonly #timer: NodeJS.Timeout | undefined;
  #progress: NodeJS.Timeout | undefined;
  #events: EventStream | null = null;
  #hasBegun = false;
  #hasSent = false;
  /** True once the engine has sent its first chunk. */
  hasStarted = false;

  /** A format that opens streams early does so after `keepAliveMs`. */
  constructor(streamed: StreamedRequest, envelope: Envelope, keepAliveMs: number) {
    this.envelope = envelope;
    this.#streamed = streamed;
    this.#format = streamed.format.openStream(envelope);
    this.takeRest = this.#format.takeRest;
    if (streamed.format.opensEarly) this.#timer = setTimeout(() => this.#open(null), keepAliveMs);
  }

  get isOpen(): boolean {
    return this.#events !== null;
  }

  /**
   * Opens the stream before there is a chunk, and keeps it alive until then. `progress` says what
   * the request waits for.
   */
  hold(progress?: () => string | null): void {
    this.#open(null);
    // Node sends the head with the first bytes.
    if (!this.#hasSent) this.#pass(this.#format.keepAlive?.() ?? ': waiting\n\n');
    if (progress === undefined || this.hasStarted) return;
    let shown: string | null = null;
    const show = () => {
      const text = progress();
      if (text === null || text === shown) return;
      shown = text;
      this.#pass(this.#format.progress?.(text) ?? `: progress: ${toBytes(text)}\n\n`);
    };
    clearInterval(this.#progress);
    this.#progress = setInterval(show, progressEveryMs).unref();
    show();
  }

  /** Call when the first chunk exists. */
  async start(): Promise<void> {
    const { account, format } = this.#streamed;
    this.hasStarted = true;
    this.close();
    if (this.#hasBegun) return;
    const usage = format.needsPromptTokens ? await account.countPrompt() : account.usage();
    if (this.#events === null) this.#open(usage);
    else this.#begin(usage);
  }

  /** Resolves when more may be sent; undefined if that is at once. */
  take(item: EngineChunk | WireEvents): Promise<void> | undefined {
    return this.#pass(this.#format.take(item));
  }

  async end(): Promise<void> {
    const { account, format } = this.#streamed;
    if (format.sendsUsage !== false) await account.completeCounts();
    const ending = this.#format.end(account.usage());
    this.#pass(typeof ending === 'string' ? ending : await ending);
    this.#events?.end();
  }

  /** Ends the stream with an error, which is reported inside of it. */
  async fail(error: InferenceError): Promise<void> {
    if (this.#events === null) this.#open(null);
    this.#pass(await this.#format.fail(error));
    this.#events?.end();
  }

  close(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#progress);
  }

  #open(usage: Usage | null): void {
    const { request, format, headers } = this.#streamed;
    if (this.#events !== null || isUnwanted(request.delivery.signal)) return;
    mergeHeaders(withElapsed(request, headers), eventStreamHeaders);
    if (format.streamType !== undefined) mergeHeaders(headers, ['content-type', format.streamType]);
    const keepAlive = this.#format.keepAlive?.bind(this.#format);
    this.#events = request.delivery.openStream(headers, keepAlive);
    if (usage === null && format.needsPromptTokens) this.#pass(keepAlive?.() ?? '');
    else this.#begin(usage);
  }

  #begin(usage: Usage | null): void {
    this.#hasBegun = true;
    this.#pass(this.#format.begin(usage));
  }

  #pass(events: WireEvents): Promise<void> | undefined {
    if (events === '') return undefined;
    this.#hasSent = true;
    return this.#events?.pass(events);
  }
}
