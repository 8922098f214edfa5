// Writes responses of the Messages API: whole, and as a stream of events.

import { readOutput, toArguments } from '#inference/choice-output.ts';
import type { Envelope } from '#inference/engine.ts';
import type { InferenceError } from '#inference/errors.ts';
import type { ResponseFormat, StreamFormat } from '#inference/serving/response-format.ts';
import {
  type ChatChoice,
  type ChatChoiceDelta,
  type EngineChunk,
  type EngineResponse,
  type FinishReason,
  noUsage,
  type Usage,
  type WireEvents,
} from '#inference/wire/response.ts';
import { parseText, TextEvents } from '#inference/wire/text-events.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { BlockWriter, toEvent } from './blocks.ts';
import { messagesErrorFormat, toErrorBody } from './errors.ts';
import type { MessagesRequest } from './schema.ts';

export const createMessagesFormat = (request: MessagesRequest): ResponseFormat => ({
  operation: 'messages',
  errors: messagesErrorFormat,
  opensEarly: true,
  needsPromptTokens: true,
  toWhole: (response, envelope) => toMessage(request, response, envelope),
  openStream: (envelope) => new MessageStream(request, envelope),
});

/** What ended a response. Servers name the stop string in different members. */
interface Ending {
  readonly finish_reason: FinishReason | null;
  readonly stop_reason?: unknown;
  readonly matched_stop?: unknown;
}

function toMessage(request: MessagesRequest, response: EngineResponse, envelope: Envelope) {
  const choice = response.choices[0] as ChatChoice;
  const { text, thoughts, calls } = readOutput(choice.message);
  const id = toMessageId(envelope);
  const blocks = [
    ...(hasText(thoughts) ? [{ type: 'thinking', thinking: thoughts, signature: id }] : []),
    ...(hasText(text) ? [{ type: 'text', text }] : []),
    ...calls.map(({ id: callId, function: called }, index) => ({
      type: 'tool_use',
      id: callId || `toolu_${id}_${index}`,
      name: called.name,
      input: toArguments(called.arguments),
    })),
  ];
  return {
    id,
    type: 'message',
    role: 'assistant',
    model: envelope.model,
    content: request.max_tokens === 0 ? [] : blocks,
    ...toStop(request, choice, calls.length > 0, response.usage),
    usage: toUsage(response.usage),
  };
}

class MessageStream implements StreamFormat {
  readonly #request: MessagesRequest;
  readonly #envelope: Envelope;
  readonly #blocks: BlockWriter;
  readonly #texts = new TextEvents();
  #ending: Ending = { finish_reason: null };

  constructor(request: MessagesRequest, envelope: Envelope) {
    this.#request = request;
    this.#envelope = envelope;
    this.#blocks = new BlockWriter(toMessageId(envelope));
  }

  begin(usage: Usage | null): WireEvents {
    const message = {
      id: toMessageId(this.#envelope),
      type: 'message',
      role: 'assistant',
      model: this.#envelope.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...toUsage(usage ?? noUsage), output_tokens: 0 },
    };
    return toBytes(toEvent('message_start', `"message":${JSON.stringify(message)}`));
  }

  take(item: EngineChunk | WireEvents): WireEvents {
    if (typeof item !== 'string') return toBytes(this.#takeChunk(item));
    let written = '';
    for (const part of this.#texts.read(item))
      written += typeof part === 'string' ? this.#takeText(part) : toBytes(this.#takeChunk(part));
    return written;
  }

  #takeText(piece: string): WireEvents {
    if (this.#request.max_tokens === 0) return '';
    if (this.#blocks.isText) return this.#blocks.passText(piece);
    const text = parseText(piece);
    return text === null || text === '' ? '' : toBytes(this.#blocks.add('text', text));
  }

  #takeChunk({ choices }: EngineChunk): string {
    let written = '';
    for (const choice of choices) written += this.#takeChoice(choice as ChatChoiceDelta);
    return written;
  }

  #takeChoice(choice: ChatChoiceDelta): string {
    if (choice.index !== 0) return '';
    if (choice.finish_reason != null) this.#ending = choice;
    if (this.#request.max_tokens === 0) return '';
    const { text, thoughts, calls } = readOutput(choice.delta);
    let written = thoughts === '' ? '' : this.#blocks.add('thinking', thoughts);
    if (text !== '') written += this.#blocks.add('text', text);
    for (const call of calls) written += this.#blocks.addCall(call);
    return written;
  }

  end(usage: Usage): WireEvents {
    const last = this.#blocks.end();
    const stop = toStop(this.#request, this.#ending, this.#blocks.hasCalls, usage);
    const members = `"delta":${JSON.stringify(stop)},"usage":${JSON.stringify(toUsage(usage))}`;
    return toBytes(last + toEvent('message_delta', members) + toEvent('message_stop', ''));
  }

  fail(error: InferenceError): WireEvents {
    const body = toErrorBody(error, this.#envelope.requestId);
    return toBytes(`event: error\ndata: ${JSON.stringify(body)}\n\n`);
  }

  keepAlive(): WireEvents {
    return toEvent('ping', '');
  }
}

const toMessageId = ({ requestId }: Envelope) => `msg_${requestId}`;

/** The input leaves out what the engine's cache had. */
function toUsage({ prompt_tokens, completion_tokens, prompt_tokens_details }: Usage) {
  const cached = Math.min(prompt_tokens_details?.cached_tokens ?? 0, prompt_tokens);
  return {
    input_tokens: prompt_tokens - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: completion_tokens,
  };
}

function toStop(request: MessagesRequest, ending: Ending, hasCalls: boolean, usage: Usage) {
  const { finish_reason: finish, stop_reason, matched_stop } = ending;
  const named = [stop_reason, matched_stop].find((one) => typeof one === 'string');
  const stop = (request.stop_sequences ?? []).find((one) => one === named) ?? null;
  if (finish === 'stop' && stop !== null)
    return { stop_reason: 'stop_sequence', stop_sequence: stop };
  return { stop_reason: toStopReason(request, finish, hasCalls, usage), stop_sequence: null };
}

function toStopReason(
  { max_tokens }: MessagesRequest,
  finish: FinishReason | null,
  hasCalls: boolean,
  { completion_tokens }: Usage,
): string {
  if (max_tokens === 0) return 'max_tokens';
  if (finish === 'content_filter') return 'refusal';
  // A response that ended before its maximum has filled the window: the maximum was reduced to what is left of it.
  if (finish === 'length')
    return completion_tokens < max_tokens ? 'model_context_window_exceeded' : 'max_tokens';
  return hasCalls ? 'tool_use' : 'end_turn';
}

/** A block of white space alone is left out: Anthropic's API refuses it when the conversation is sent back. */
const hasText = (text: string) => /\S/.test(text);
