// A response that is read as a whole before it is used. Large ones are kept as blocks of bytes for a thread.

import type { IncomingHttpHeaders } from 'node:http';
import type { ResponseHandler } from '#http/client/response-handler.ts';
import { unavailable } from '#inference/engines/upstream/failures.ts';
import type {
  SendOptions,
  UpstreamClient,
  UpstreamRequest,
} from '#inference/engines/upstream/upstream-client.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';

/** Larger responses are parsed in a thread: parsing and serialising this many bytes takes some 4 ms. */
const maxInlineBytes = 256 * 1024;
const maxResponseBytes = 64 * 1024 * 1024;
/** Maximum bytes of a response with a status other than 200, which is always parsed on the event loop. */
const maxErrorBytes = 1024 * 1024;

export class BufferedResponse {
  readonly status: number;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly #body: BoundedBody;

  constructor(status: number, headers: Readonly<IncomingHttpHeaders>, body: BoundedBody) {
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

  /** The bytes of a large response in order; null for others. */
  get blocks(): Uint8Array<ArrayBuffer>[] | null {
    return this.#body.blocks();
  }
}

/** `onWork` is called with true when the request is written. Throws EngineError, or the signal's reason. */
export function fetchWhole(
  client: UpstreamClient,
  options: SendOptions,
  onWork?: (isAtWork: boolean) => void,
): Promise<BufferedResponse> {
  return new Promise((resolve, reject) => {
    if (options.signal.aborted) reject(options.signal.reason);
    else client.send(options, new ResponseBuffer(resolve, reject, onWork));
  });
}

class ResponseBuffer implements ResponseHandler<UpstreamRequest> {
  readonly onError: (error: unknown) => void;
  readonly #resolve: (response: BufferedResponse) => void;
  readonly #onWork: ((isAtWork: boolean) => void) | undefined;
  readonly #body = new BoundedBody(maxResponseBytes);
  #request: UpstreamRequest | null = null;
  #status = 0;
  #headers: Readonly<IncomingHttpHeaders> = {};

  constructor(
    resolve: (response: BufferedResponse) => void,
    reject: (error: unknown) => void,
    onWork: ((isAtWork: boolean) => void) | undefined,
  ) {
    this.#resolve = resolve;
    this.onError = reject;
    this.#onWork = onWork;
  }

  onSent(request: UpstreamRequest): void {
    this.#request = request;
    this.#onWork?.(true);
  }

  onHead(status: number, headers: Readonly<IncomingHttpHeaders>): void {
    this.#status = status;
    this.#headers = headers;
    this.#request?.progress();
  }

  onBody(bytes: Buffer): void {
    this.#request?.progress();
    const fits = this.#body.add(bytes);
    if (this.#status !== 200 && this.#body.size > maxErrorBytes)
      this.#request?.stop(unavailable(`responded with status ${this.#status}`));
    else if (!fits) this.#request?.stop(unavailable('sent a response that is too large'));
  }

  onEnd(): void {
    this.#resolve(new BufferedResponse(this.#status, this.#headers, this.#body));
  }
}

export class BoundedBody {
  readonly #maxBytes: number;
  /** A byte string, up to `maxInlineBytes`. */
  #bytes = '';
  #blocks: ByteBlocks | null = null;
  size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** False if the body exceeds its bound. */
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

/** Bytes copied into blocks that can be transferred to a thread, because packets may be a few bytes each. */
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
