// The responses of the Messages API, for /openapi.json. They describe and never serialize.

import { OneOf, open, Type } from '#lib/schema/schema-builder.ts';

const Text = Type.String();

const Usage = Type.Object(
  {
    input_tokens: Type.Integer({ description: 'Without those that the cache had.' }),
    cache_creation_input_tokens: Type.Integer(),
    cache_read_input_tokens: Type.Integer(),
    output_tokens: Type.Integer(),
  },
  open,
);

const Message = Type.Object(
  {
    id: Text,
    type: OneOf(['message']),
    role: OneOf(['assistant']),
    model: Text,
    content: Type.Array(Type.Object({ type: OneOf(['text', 'thinking', 'tool_use']) }, open)),
    stop_reason: OneOf([
      'end_turn',
      'max_tokens',
      'stop_sequence',
      'tool_use',
      'refusal',
      'model_context_window_exceeded',
    ]),
    stop_sequence: Type.Union([Text, Type.Null()]),
    usage: Usage,
  },
  open,
);

const Event = Type.Object({ type: Text }, open);

export const messagesResponses = {
  200: {
    description:
      'If stream is true: server-sent events, from `message_start` to `message_stop`. A stream that fails ends with an event `error`.',
    content: {
      'application/json': { schema: Message },
      'text/event-stream': { schema: Event },
    },
  },
};

export const countTokensResponses = {
  200: {
    description: 'The length of the prompt.',
    content: {
      'application/json': { schema: Type.Object({ input_tokens: Type.Integer() }, open) },
    },
  },
};

const text = { type: 'string' };

/** Anthropic's error format. */
export const messagesErrorSchema = {
  name: 'MessagesError',
  schema: {
    type: 'object',
    description: 'An error of the Messages API, in Anthropic’s format.',
    required: ['error'],
    properties: {
      type: { ...text, const: 'error' },
      request_id: text,
      error: {
        type: 'object',
        required: ['type', 'message'],
        properties: {
          type: { ...text, description: 'The kind of error, which Anthropic’s SDKs know.' },
          message: { ...text, description: 'What is wrong, what is allowed, and what to do.' },
          details: { type: 'object', properties: { error_code: text } },
        },
      },
    },
  },
};
