// Writes responses in the format of the Responses API, whole or as a stream of events.

import { wantsLogprobs } from '#inference/apis/responses/request/to-task.ts';
import type { ToolSet } from '#inference/apis/responses/request/tools.ts';
import type { Envelope } from '#inference/engine.ts';
import { type InferenceError, inferenceErrorFormat } from '#inference/errors.ts';
import type { ResponseFormat, StreamFormat } from '#inference/serving/response-format.ts';
import type {
  ChatChoice,
  ChatChoiceDelta,
  EngineChunk,
  Usage,
  WireEvents,
} from '#inference/wire/response.ts';
import { TextEvents } from '#inference/wire/text-events.ts';
import type { Clock } from '#lib/clock.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { EventWriter } from './events.ts';
import { Output } from './output.ts';
import {
  createResponseWriter,
  toFinish,
  toResponseError,
  toResponseObject,
  toResponseUsage,
} from './response-object.ts';
import type { ResponseObject, ResponseRequest } from './schema.ts';

export interface ResponsesFormatOptions {
  readonly request: ResponseRequest;
  readonly id: ResponseObject['id'];
  readonly tools: ToolSet;
  readonly clock: Clock;
  /** Seals a text for the request's account. */
  readonly seal: (text: string) => string;
  /** Called with the final response, also with a failed one, before the client learns of it. */
  readonly onFinished?: ((response: ResponseObject) => Promise<void>) | undefined;
}

export function createResponsesFormat(options: ResponsesFormatOptions): ResponseFormat {
  return {
    operation: 'responses',
    errors: inferenceErrorFormat,
    // Codex counts the time between events.
    opensEarly: true,
    // Codex compacts the conversation when it reads this in a stream, and gives up on a status of 400.
    isSentInStream: ({ code }) => code === 'context_length_exceeded',
    async toWhole({ choices, usage }, envelope) {
      const stream = new ResponsesStream(options, envelope);
      stream.takeChoice(toDelta(choices[0] as ChatChoice));
      return stream.finish(usage);
    },
    openStream: (envelope) => new ResponsesStream(options, envelope),
  };
}

const begunTypes = ['created', 'in_progress'];
const queuedTypes = ['created', 'queued', 'in_progress'];

class ResponsesStream implements StreamFormat {
  readonly #options: ResponsesFormatOptions;
  readonly #begun: ResponseObject;
  readonly #writeResponse: ReturnType<typeof createResponseWriter>;
  readonly #events = new EventWriter();
  readonly #output: Output;
  readonly #texts = new TextEvents();
  #hasBegun = false;

  constructor(options: ResponsesFormatOptions, { created, model }: Envelope) {
    const { request, id, tools, seal } = options;
    this.#options = options;
    this.#begun = toResponseObject(request, { id, created, model });
    this.#writeResponse = createResponseWriter(this.#begun);
    const hasSeal = request.include?.includes('reasoning.encrypted_content') === true;
    this.#output = new Output(
      {
        idBase: id.slice('resp_'.length),
        tools,
        hasLogprobs: wantsLogprobs(request),
        seal: hasSeal ? seal : null,
      },
      this.#events,
    );
  }

  begin(): WireEvents {
    this.#hasBegun = true;
    const response = `"response":${this.#writeResponse()}`;
    const types = this.#begun.background ? queuedTypes : begunTypes;
    return toBytes(types.map((type) => this.#events.write(type, response)).join(''));
  }

  take(item: EngineChunk | WireEvents): WireEvents {
    if (typeof item !== 'string') return toBytes(this.#takeChunk(item));
    let written = '';
    for (const part of this.#texts.read(item))
      written +=
        typeof part === 'string' ? this.#output.passText(part) : toBytes(this.#takeChunk(part));
    return written;
  }

  #takeChunk({ choices }: EngineChunk): string {
    let written = '';
    for (const choice of choices) written += this.takeChoice(choice as ChatChoiceDelta);
    return written;
  }

  takeChoice(choice: ChatChoiceDelta): string {
    return choice.index === 0 && choice.delta != null ? this.#output.take(choice) : '';
  }

  async end(usage: Usage): Promise<WireEvents> {
    const closing = this.#output.close('completed');
    return toBytes(closing + this.#writeLast(await this.finish(usage)));
  }

  async fail(error: InferenceError): Promise<WireEvents> {
    const opening = this.#hasBegun ? '' : this.begin();
    // Events of unfinished items are not sent: clients run the calls that are announced as done.
    const { sequence } = this.#events;
    this.#output.close('incomplete');
    this.#events.sequence = sequence;
    const failed: ResponseObject = {
      ...this.#begun,
      status: 'failed',
      error: toResponseError(error),
      output: this.#output.items,
    };
    await this.#options.onFinished?.(failed);
    return opening + toBytes(this.#writeLast(failed));
  }

  keepAlive(): WireEvents {
    return toBytes(this.#events.write('in_progress', `"response":${this.#writeResponse()}`));
  }

  /** The final response, once it was handed on. */
  async finish(usage: Usage): Promise<ResponseObject> {
    const { clock, onFinished } = this.#options;
    const finished: ResponseObject = {
      ...this.#begun,
      ...toFinish(this.#output.finish),
      completed_at: Math.floor(clock.now() / 1000),
      output: this.#output.items,
      usage: toResponseUsage(usage),
    };
    await onFinished?.(finished);
    return finished;
  }

  #writeLast(response: ResponseObject): string {
    const { completed_at, status, error, incomplete_details, output, usage } = response;
    const outcome = { completed_at, status, error, incomplete_details, output, usage };
    return this.#events.write(status, `"response":${this.#writeResponse(outcome)}`);
  }
}

/** A whole message as the one chunk of a stream. */
function toDelta({ index, message, logprobs, finish_reason }: ChatChoice): ChatChoiceDelta {
  const { content, reasoning_content, tool_calls } = message;
  return {
    index,
    delta: {
      content,
      ...(reasoning_content !== undefined && { reasoning_content }),
      tool_calls: (tool_calls ?? []).map((call, at) => ({ ...call, index: at })),
    },
    logprobs,
    finish_reason,
  };
}
