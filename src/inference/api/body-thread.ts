// Parses large bodies in a thread, one at a time, taking turns among callers. If the thread dies, the body it was
// parsing is refused with 503, and the next body restarts the thread.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { memberTexts, type WithMemberTexts, type Written, written } from '#http/body/json.ts';
import type { Rendered } from '#http/error-format.ts';
import type { Task } from '#inference/engine.ts';
import { InferenceError } from '#inference/errors.ts';
import { FairQueue } from '#lib/async/fair-queue.ts';
import { createThread } from '#lib/async/thread.ts';
import { overloaded, rateLimited } from '#lib/errors.ts';
import { addPiece, type Piece } from './body-pieces.ts';

export interface BodyThread {
  /** Rejects with the error to refuse the body with, or with the signal's reason once it is aborted. */
  parse(ask: BodyAsk, signal: AbortSignal): Promise<Prepared>;
  close(): Promise<void>;
}

export interface BodyAsk {
  readonly caller: string;
  readonly kind: Task['kind'];
  /** Ownership passes to the thread: the caller must not use the buffer afterwards. */
  readonly bytes: Buffer;
}

export interface Prepared extends Written, WithMemberTexts {
  [name: string]: unknown;
}

/** The thread refused the body. `model` is the requested model, for the usage row. */
export class BodyRefused extends InferenceError {
  readonly model: string;

  constructor({ status, body, headers }: Rendered, model: string) {
    const { message, type, code, param } = (body as { error: ErrorBody }).error;
    super(status, message, {
      type,
      ...(code === null ? {} : { code }),
      ...(param === null ? {} : { param }),
      headers: headers ?? {},
    });
    this.model = model;
  }
}

type ErrorBody = Pick<InferenceError, 'message' | 'type' | 'code' | 'param'>;

export interface BodyJob {
  readonly id: number;
  readonly kind: Task['kind'];
  readonly bytes: Uint8Array;
}

export interface BodyAnswer {
  readonly id: number;
  readonly refused: Rendered | null;
  readonly model: string;
  /** Delivers the body as messages; null if the body was refused. */
  readonly port: MessagePort | null;
}

export type BodyMessage =
  | { readonly piece: Piece }
  | { readonly name: string; readonly text: string }
  | { readonly written: Record<string, string> };

interface Waiting extends BodyAsk {
  resolve(body: Prepared): void;
  reject(error: unknown): void;
}

/** Bodies of up to 256 KiB are queued without admission, so this many take at most 64 MiB. */
const maxWaiting = 256;
const maxCallerWaiting = 128;
const retryMs = 1000;

export interface BodyBounds {
  readonly maxBytes: number;
  readonly maxValues: number;
}

/**
 * V8 ends the whole process if a thread runs out of memory inside `JSON.parse`. So the heap limit exceeds what any
 * body within the bounds takes: text with two bytes per character, in several forms, and 512 bytes per value.
 */
const toHeapMb = ({ maxBytes, maxValues }: BodyBounds) =>
  256 + Math.ceil((maxBytes * 16 + maxValues * 512) / 2 ** 20);

export function createBodyThread(
  bounds: BodyBounds,
  /** Overridden only in tests. */
  file = new URL('./body-worker.ts', import.meta.url),
): BodyThread {
  const line = new FairQueue<Waiting>();
  const lengths = new Map<string, number>();
  let running: Waiting | null = null;
  /** Only one body at a time is rebuilt here, because several would share each turn of the event loop. */
  let isReceiving = false;
  let nextId = 0;
  const thread = createThread<BodyAnswer>(
    {
      name: 'bodies',
      file,
      resourceLimits: { maxOldGenerationSizeMb: toHeapMb(bounds) },
    },
    {
      received({ id, refused, model, port }) {
        if (id !== nextId) return;
        if (refused !== null) finish((job) => job.reject(new BodyRefused(refused, model)));
        if (port === null) return;
        isReceiving = true;
        receive(port).then((body) => finish((job) => job.resolve(body)));
      },
      ended() {
        // If the body is being received, everything the thread sent has already arrived.
        if (!isReceiving) finish(({ reject }) => reject(died()));
      },
    },
  );

  function finish(settle: (job: Waiting) => void): void {
    const job = running;
    running = null;
    isReceiving = false;
    if (job !== null) settle(job);
    startNext();
  }

  function startNext(): void {
    if (running !== null) return;
    const job = line.take(() => true);
    if (job === undefined) {
      thread.release();
      return;
    }
    leave(job);
    running = job;
    const bytes = toOwn(job.bytes);
    const { kind } = job;
    thread.send({ id: ++nextId, kind, bytes } satisfies BodyJob, [bytes.buffer]);
  }

  function leave({ caller }: Waiting): void {
    const length = (lengths.get(caller) ?? 0) - 1;
    if (length <= 0) lengths.delete(caller);
    else lengths.set(caller, length);
  }

  return {
    async parse(ask, signal) {
      signal.throwIfAborted();
      const length = lengths.get(ask.caller) ?? 0;
      if (length >= maxCallerWaiting) throw rateLimited(tooManyText, retryMs);
      if (line.size >= maxWaiting) throw overloaded(tooManyText, retryMs);
      const { promise, resolve, reject } = Promise.withResolvers<Prepared>();
      const job: Waiting = { ...ask, resolve, reject };
      const abandon = () => {
        if (!line.remove(job.caller, job)) return;
        leave(job);
        reject(signal.reason);
      };
      signal.addEventListener('abort', abandon);
      lengths.set(ask.caller, length + 1);
      line.push(ask.caller, job);
      startNext();
      return promise.finally(() => signal.removeEventListener('abort', abandon));
    },
    close: () => thread.close(),
  };
}

/** Takes one message per turn of the event loop. */
async function receive(port: MessagePort): Promise<Prepared> {
  const body: Prepared = {};
  const texts = new Map<string, string>();
  for (;;) {
    const received = receiveMessageOnPort(port) as { message: BodyMessage } | undefined;
    if (received === undefined) break;
    const { message } = received;
    if ('piece' in message) addPiece(body, message.piece);
    else if ('text' in message) texts.set(message.name, message.text);
    else body[written] = message.written;
    await new Promise(setImmediate);
  }
  port.close();
  body[memberTexts] = texts;
  return body;
}

/** Copies the bytes: a transfer moves the whole underlying memory, which small Buffers share. */
function toOwn(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = bytes;
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  return isOwn ? new Uint8Array(buffer) : new Uint8Array(bytes);
}

const tooManyText =
  'Too many large request bodies wait to be parsed. Try again after the time in retry-after.';

const died = () =>
  overloaded('The body could not be parsed. Try again after the time in retry-after.', retryMs);
