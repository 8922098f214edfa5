// The responses of the Responses API, for /openapi.json. They describe and never serialize.

import { OneOf, open, Type } from '#lib/schema/schema-builder.ts';

const Usage = Type.Object(
  {
    input_tokens: Type.Integer(),
    input_tokens_details: Type.Object({ cached_tokens: Type.Integer() }, open),
    output_tokens: Type.Integer(),
    output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }, open),
    total_tokens: Type.Integer(),
  },
  open,
);

const Items = Type.Array(
  Type.Object(
    { id: Type.String(), type: Type.String(), status: Type.Optional(Type.String()) },
    open,
  ),
  { description: 'Messages, reasoning and tool calls, in the order in which they were generated.' },
);

export const ResponseSchema = Type.Object(
  {
    id: Type.String(),
    object: OneOf(['response']),
    created_at: Type.Integer(),
    status: OneOf(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
    model: Type.String(),
    output: Items,
    error: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()]),
    incomplete_details: Type.Union([Type.Object({ reason: Type.String() }), Type.Null()]),
    usage: Type.Union([Usage, Type.Null()]),
  },
  open,
);

const Event = Type.Object(
  { type: Type.String(), sequence_number: Type.Integer() },
  {
    ...open,
    description:
      'If stream is true: server-sent events, of which the last one is response.completed, response.incomplete or response.failed.',
  },
);

const Compaction = Type.Object(
  {
    id: Type.String(),
    object: OneOf(['response.compaction']),
    created_at: Type.Integer(),
    output: Items,
    usage: Usage,
  },
  open,
);

const InputTokens = Type.Object({
  object: OneOf(['response.input_tokens']),
  input_tokens: Type.Integer(),
});

const doc = (description: string, schema: object, event?: object) => ({
  200: {
    description,
    content: {
      'application/json': { schema },
      ...(event !== undefined && { 'text/event-stream': { schema: event } }),
    },
  },
});

export const responseResponses = doc('The response, whole or as a stream.', ResponseSchema, Event);
export const compactionResponses = doc('The compacted conversation.', Compaction);
export const inputTokensResponses = doc('The length of the prompt.', InputTokens);
