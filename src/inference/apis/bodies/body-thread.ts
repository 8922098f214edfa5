// Parses large bodies in a thread, one at a time, taking turns among callers. If the thread dies, the body it was
// parsing is refused with 503, and the next body restarts the thread.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import {
  memberTexts,
  rawIntegers,
  type WithMemberTexts,
  type WithRawIntegers,
} from '#http/body/json.ts';
import { type Rendered, RenderedError } from '#http/error-format.ts';
import { QueueRefusal } from '#lib/async/bounded-fair-queue.ts';
import { type JobLimits, JobThread } from '#lib/async/job-thread.ts';
import type { Clock } from '#lib/clock.ts';
import { overloaded, rateLimited } from '#lib/errors.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';
import { addPiece, type Piece } from './body-pieces.ts';

export interface BodyThread {
  /** Rejects with the error to refuse the body with, or with the signal's reason once it is aborted. */
  parse(body: LargeBody, signal: AbortSignal): Promise<Prepared>;
  close(): Promise<void>;
}

export interface LargeBody {
  readonly caller: string;
  /** URL of its endpoint. */
  readonly url: string;
  /** Ownership passes to the thread: the caller must not use the buffer afterwards. */
  readonly bytes: Buffer;
}

export interface Prepared extends WithRawIntegers, WithMemberTexts {
  [name: string]: unknown;
}

/** The thread refused the body. `model` is the requested model, for the usage row. */
export class BodyRefused extends RenderedError {
  readonly model: string;

  constructor(rendered: Rendered, model: string) {
    super(rendered);
    this.model = model;
  }
}

export interface BodyJob {
  readonly url: string;
  readonly bytes: Uint8Array;
}

/** The thread's message: the port delivers the body as further messages. */
export type BodyResult =
  | { readonly port: MessagePort }
  | { readonly refused: Rendered; readonly model: string };

export type BodyMessage =
  | { readonly piece: Piece }
  | { readonly name: string; readonly text: Uint8Array }
  | { readonly rawIntegers: Record<string, string> };

/** Bodies of up to 256 KiB are queued without admission, so this many take at most 64 MiB. */
const limits: JobLimits = { maxLength: 256, maxWaitMs: 60_000, maxRunMs: 60_000 };
/** Bodies of one caller that wait or are being parsed. */
const maxCallerBodies = 128;
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
  clock: Clock,
  bounds: BodyBounds,
  /** Overridden only in tests. */
  file = new URL('./body-worker.ts', import.meta.url),
): BodyThread {
  const resourceLimits = { maxOldGenerationSizeMb: toHeapMb(bounds) };
  // The next body starts once this one is rebuilt here: several would share each turn of the event loop.
  const jobs = new JobThread<BodyJob, Prepared | BodyRefused, BodyResult>(
    clock,
    { name: 'bodies', file, resourceLimits },
    limits,
    { receive },
  );
  const bodies = new KeyCounts();
  return {
    async parse({ caller, url, bytes: given }, signal) {
      if (bodies.get(caller) >= maxCallerBodies) throw rateLimited(tooManyText, retryMs);
      const bytes = toOwn(given);
      bodies.add(caller);
      const answer = await jobs
        .run({ url, bytes }, { caller, priority: 0, signal }, [bytes.buffer])
        .catch((error) => {
          throw error === signal.reason ? error : toRefusal(error);
        })
        .finally(() => bodies.remove(caller));
      if (answer instanceof BodyRefused) throw answer;
      return answer;
    },
    close: () => jobs.close(),
  };
}

async function receive(result: BodyResult): Promise<Prepared | BodyRefused> {
  return 'port' in result ? rebuild(result.port) : new BodyRefused(result.refused, result.model);
}

/** Takes one message per turn of the event loop. */
async function rebuild(port: MessagePort): Promise<Prepared> {
  const body: Prepared = {};
  const texts: [string, Uint8Array][] = [];
  for (;;) {
    const received = receiveMessageOnPort(port) as { message: BodyMessage } | undefined;
    if (received === undefined) break;
    const { message } = received;
    if ('piece' in message) addPiece(body, message.piece);
    else if ('text' in message) texts.push([message.name, message.text]);
    else body[rawIntegers] = message.rawIntegers;
    await new Promise(setImmediate);
  }
  port.close();
  body[memberTexts] = new Map(texts.map(([name, text]) => [body[name], text]));
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

const toRefusal = (error: unknown) =>
  error instanceof QueueRefusal
    ? overloaded(tooManyText, error.retryAfterMs)
    : overloaded('The body could not be parsed. Try again after the time in retry-after.', retryMs);
