// Large plain responses are parsed, completed and serialised in a thread, so that they delay no other request. Only
// their token counts are checked here. Clients get the same bytes as if the response had been small.

import {
  type Call,
  EngineError,
  type Envelope,
  type Task,
  toEngineError,
} from '#inference/engine.ts';
import {
  describeType,
  toRefusalFailure,
  unavailable,
} from '#inference/engines/upstream/failures.ts';
import type { UpstreamRefusal } from '#inference/engines/upstream/refusal-body.ts';
import { generatedOnly } from '#inference/engines/upstream/usage.ts';
import { estimateTokensOf } from '#inference/models/tokens.ts';
import { type Usage, WrittenResponse } from '#inference/wire/response.ts';
import { type JobLimits, JobThread, JobTooLarge } from '#lib/async/job-thread.ts';
import type { Clock } from '#lib/clock.ts';
import type { BufferedResponse } from './buffered-response.ts';
import { acceptUsage, type ResponseCounting, type ResponseTask } from './parse-response.ts';

export interface ResponseThread {
  /** Transfers the response's bytes to the thread. Throws EngineError, or the signal's reason. */
  read(
    task: Task,
    response: BufferedResponse,
    call: Call,
    counting: ResponseCounting,
  ): Promise<WrittenResponse>;
  close(): Promise<void>;
}

export interface ResponseJob {
  readonly blocks: readonly Uint8Array[];
  readonly task: ResponseTask;
  readonly envelope: Envelope;
  /** The content type, for error messages. */
  readonly type: string;
}

export type ResponseResult =
  | {
      readonly before: Uint8Array;
      readonly after: Uint8Array;
      readonly choices: number;
      /** The usage that the server reported, not checked yet. */
      readonly usage: unknown;
      /** The generated text; null if it is too long to be counted. */
      readonly generated: string | null;
      readonly generatedBytes: number;
    }
  | { readonly refusal: UpstreamRefusal | null }
  | { readonly unavailable: string; readonly isUnreadable: boolean };

/** Longer texts are estimated, not counted. */
export const maxCountedLength = 1024 * 1024;

/** Maximum bytes of all responses that wait for the thread or are in it. */
const maxHeldBytes = 512 * 1024 * 1024;
const limits: JobLimits = { maxLength: 1024, maxWaitMs: 60_000, maxRunMs: 30_000 };

export function createResponseThread(clock: Clock): ResponseThread {
  let heldBytes = 0;
  const jobs = new JobThread<ResponseJob, ResponseResult>(
    clock,
    {
      name: 'responses',
      file: new URL('./response-worker.ts', import.meta.url),
      resourceLimits: { maxOldGenerationSizeMb: 1024 },
    },
    limits,
  );

  async function run(response: BufferedResponse, task: Task, call: Call): Promise<ResponseResult> {
    const { size } = response;
    const blocks = response.blocks ?? [];
    if (heldBytes + size > maxHeldBytes)
      throw new EngineError('overloaded', 'Too many large responses wait to be read.');
    const { kind, body } = task;
    const job: ResponseJob = {
      blocks,
      task: {
        kind,
        body: { stop_token_ids: body.stop_token_ids ?? null },
        thinkTags: task.kind === 'chat' ? task.thinkTags : undefined,
      },
      envelope: call.envelope,
      type: describeType(response.headers),
    };
    heldBytes += size;
    try {
      const transfer = blocks.map(({ buffer }) => buffer);
      return await jobs.run(job, call, transfer);
    } catch (error) {
      if (!(error instanceof JobTooLarge)) throw toEngineError(error);
      throw unavailable(`sent a response that takes too much ${error.limit}`);
    } finally {
      heldBytes -= size;
    }
  }

  return {
    async read(task, response, call, counting) {
      const { size } = response;
      const read = await run(response, task, call);
      if ('refusal' in read) throw toRefusalFailure(read.refusal, task);
      if ('unavailable' in read) {
        const { unavailable: message, isUnreadable } = read;
        throw new EngineError('unavailable', message, { isUnreadable });
      }
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
  { generated, generatedBytes }: { generated: string | null; generatedBytes: number },
  { countGenerated, check }: ResponseCounting,
): Promise<Usage> {
  const counted = generated === null ? null : await countGenerated?.(generated);
  return generatedOnly(check.cap(counted ?? estimateTokensOf(generatedBytes)));
}
