// The form in which chat and text completions are sent. Engines use it too, so almost everything passes unchanged.

import type { Envelope, Task } from '#inference/engine.ts';
import { type InferenceError, inferenceErrorFormat } from '#inference/errors.ts';
import type { ResponseFormat, StreamFormat } from '#inference/serving/response-format.ts';
import { type ChunkWriter, createChunkWriter, toResponse } from '#inference/wire/envelope.ts';
import type { EngineChunk, Usage, WireEvents } from '#inference/wire/response.ts';
import { toBytes } from '#lib/memory/byte-string.ts';

export const toOpenAiFormat = (task: Task): ResponseFormat => ({
  operation: task.kind === 'chat' ? 'chat' : 'text_completion',
  errors: inferenceErrorFormat,
  takesWritten: true,
  sendsUsage: showsUsage(task),
  toWhole: (response, envelope) => toResponse(envelope, response),
  openStream: (envelope) => new OpenAiStream(envelope, showsUsage(task)),
});

/** True if the client asks for the usage at the end of a stream. */
export const showsUsage = ({ body }: Task): boolean => body.stream_options?.include_usage === true;

export class OpenAiStream implements StreamFormat {
  readonly #envelope: Envelope;
  /** Members of the stream's events besides its choices, sent with its usage; null if no usage is sent. */
  readonly #rest: Record<string, unknown> | null;
  /** Null until it is needed: most streams arrive in wire format. */
  #write: ChunkWriter | null = null;
  readonly takeRest?: (members: Record<string, unknown>) => void;

  constructor(envelope: Envelope, showsUsage: boolean) {
    this.#envelope = envelope;
    this.#rest = showsUsage ? {} : null;
    if (showsUsage) this.takeRest = (members) => Object.assign(this.#rest ?? {}, members);
  }

  begin(): WireEvents {
    return '';
  }

  take(item: EngineChunk | WireEvents): WireEvents {
    if (typeof item === 'string') return item;
    const { choices, usage } = item;
    return choices.length === 0 ? '' : this.#toEvent({ choices, usage });
  }

  end(usage: Usage): WireEvents {
    const rest = this.#rest;
    return rest === null ? done : this.#toEvent({ choices: [], usage, rest }) + done;
  }

  fail(error: InferenceError): WireEvents {
    const body = this.#envelope.kind === 'chat' ? { delta: {} } : { text: '' };
    const choices = [{ index: 0, ...body, finish_reason: 'error' }];
    return toEvent(JSON.stringify({ ...error.toBody(), choices })) + done;
  }

  #toEvent(chunk: EngineChunk): WireEvents {
    this.#write ??= createChunkWriter(this.#envelope, this.#rest !== null);
    return toEvent(this.#write(chunk));
  }
}

const done = 'data: [DONE]\n\n';

const toEvent = (data: string): WireEvents => `data: ${toBytes(data)}\n\n`;
