// Large plain responses are parsed, completed and written in a thread, so that they delay no other request: here
// only their counts are looked at. What clients get is the same, byte for byte, as of a small response.

import {
  type Call,
  EngineError,
  type Envelope,
  type Task,
  type Usage,
  WrittenResponse,
} from '#inference/engine.ts';
import { type JobLimits, JobThread, JobTooLarge } from '#inference/job-thread.ts';
import { estimateTokensOf } from '#inference/models/tokens.ts';
import type { Clock } from '#lib/clock.ts';
import { type AnswerTask, acceptUsage, type Counting, describeType } from './answer.ts';
import type { WholeAnswer } from './buffered-response.ts';
import { toRefusalFailure, unavailable } from './failures.ts';
import type { UpstreamRefusal } from './refusal-body.ts';
import { generatedOnly } from './usage.ts';

export interface ResponseThread {
  /** Throws EngineError when it is no answer, or the signal's reason. Takes the response's bytes away. */
  read(task: Task, whole: WholeAnswer, call: Call, counting: Counting): Promise<WrittenResponse>;
  close(): Promise<void>;
}

export interface ResponseQuestion {
  readonly blocks: readonly Uint8Array[];
  readonly task: AnswerTask;
  readonly envelope: Envelope;
  /** The content type, for an error that names it. */
  readonly type: string;
}

export type ResponseAnswer =
  | {
      readonly before: Uint8Array;
      readonly after: Uint8Array;
      readonly choices: number;
      /** As the server gave it. */
      readonly usage: unknown;
      /** What the model wrote, if it is short enough to be counted. */
      readonly said: string | null;
      readonly saidBytes: number;
    }
  | { readonly refusal: UpstreamRefusal | null }
  | { readonly unavailable: string };

/** More of a text is never counted exactly. */
export const maxSaidLength = 1024 * 1024;

/** Bytes of responses that wait or are read. */
const maxHeldBytes = 512 * 1024 * 1024;
const limits: JobLimits = { length: 1024, waitMs: 60_000, runMs: 30_000 };

export function createResponseThread(clock: Clock): ResponseThread {
  let heldBytes = 0;
  const jobs = new JobThread<ResponseQuestion, ResponseAnswer>(
    clock,
    {
      name: 'responses',
      file: new URL('./response-worker.ts', import.meta.url),
      resourceLimits: { maxOldGenerationSizeMb: 1024 },
    },
    limits,
  );

  async function run(whole: WholeAnswer, task: Task, call: Call): Promise<ResponseAnswer> {
    const { size } = whole;
    const blocks = whole.blocks ?? [];
    if (heldBytes + size > maxHeldBytes)
      throw new EngineError('overloaded', 'Too many large responses wait to be read.');
    const { kind, body } = task;
    const question: ResponseQuestion = {
      blocks,
      task: { kind, body: { stop_token_ids: body.stop_token_ids ?? null } },
      envelope: call.envelope,
      type: describeType(whole.headers),
    };
    heldBytes += size;
    try {
      const transfer = blocks.map(({ buffer }) => buffer);
      return await jobs.run(question, call, transfer);
    } catch (error) {
      if (!(error instanceof JobTooLarge)) throw error;
      throw unavailable(`sent an answer that takes too much ${error.limit}`);
    } finally {
      heldBytes -= size;
    }
  }

  return {
    async read(task, whole, call, counting) {
      const { size } = whole;
      const read = await run(whole, task, call);
      if ('refusal' in read) throw toRefusalFailure(read.refusal, task);
      if ('unavailable' in read) throw new EngineError('unavailable', read.unavailable);
      const { usage, choices, before, after } = read;
      const counts =
        acceptUsage({ usage, choices: { length: choices } }, size, counting) ??
        (await count(read, counting));
      return new WrittenResponse(counts, before, after);
    },
    close: () => jobs.close(),
  };
}

async function count(
  { said, saidBytes }: { said: string | null; saidBytes: number },
  { countGenerated, check }: Counting,
): Promise<Usage> {
  const counted = said === null ? null : await countGenerated?.(said);
  return generatedOnly(check.cap(counted ?? estimateTokensOf(saidBytes)));
}
