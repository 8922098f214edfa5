// The responses of both main endpoints, for /openapi.json. They describe and never serialize: an
// upstream may add members.

import { OneOf, open, Type } from '#lib/schema/schema-builder.ts';

const Text = Type.String();
type Schema = Parameters<typeof Type.Array>[0];

const OrNull = <S extends Schema>(schema: S) => Type.Union([schema, Type.Null()]);

const Usage = Type.Object(
  {
    prompt_tokens: Type.Integer(),
    completion_tokens: Type.Integer(),
    total_tokens: Type.Integer(),
    prompt_tokens_details: Type.Optional(
      OrNull(Type.Object({ cached_tokens: Type.Integer() }, open)),
    ),
  },
  open,
);

const FinishReason = OneOf(['stop', 'length', 'tool_calls', 'function_call', 'content_filter']);

const FunctionCall = Type.Object(
  { name: Type.Optional(Text), arguments: Type.String({ description: 'JSON, or a part of it.' }) },
  open,
);

const ToolCall = Type.Object({ id: Text, type: OneOf(['function']), function: FunctionCall }, open);

/** The first delta of a call has its id and name; the next ones add to its arguments. */
const ToolCallDelta = Type.Object(
  {
    index: Type.Integer(),
    id: Type.Optional(Text),
    type: Type.Optional(OneOf(['function'])),
    function: FunctionCall,
  },
  open,
);

const TokenLogprob = {
  token: Text,
  logprob: Type.Number(),
  bytes: OrNull(Type.Array(Type.Integer())),
};

const ChatLogprobs = Type.Object(
  {
    content: OrNull(
      Type.Array(
        Type.Object(
          { ...TokenLogprob, top_logprobs: Type.Array(Type.Object(TokenLogprob, open)) },
          open,
        ),
      ),
    ),
  },
  open,
);

const CompletionLogprobs = Type.Object(
  {
    tokens: Type.Array(Text),
    token_logprobs: Type.Array(OrNull(Type.Number())),
    top_logprobs: OrNull(Type.Array(OrNull(Type.Record(Text, Type.Number())))),
    text_offset: Type.Array(Type.Integer()),
  },
  open,
);

const ChatMessage = Type.Object(
  {
    role: OneOf(['assistant']),
    content: OrNull(Text),
    tool_calls: Type.Optional(OrNull(Type.Array(ToolCall))),
    function_call: Type.Optional(OrNull(FunctionCall)),
  },
  open,
);

const ChatDelta = Type.Object(
  {
    role: Type.Optional(OneOf(['assistant'])),
    content: Type.Optional(OrNull(Text)),
    tool_calls: Type.Optional(Type.Array(ToolCallDelta)),
    function_call: Type.Optional(FunctionCall),
  },
  open,
);

const envelope = { id: Text, created: Type.Integer(), model: Text };

const toObject = (object: string, choice: Record<string, Schema>, usage: object) =>
  Type.Object(
    {
      ...envelope,
      object: OneOf([object]),
      choices: Type.Array(Type.Object({ index: Type.Integer(), ...choice }, open)),
      ...usage,
    },
    open,
  );

const completionChoice = {
  text: Text,
  logprobs: OrNull(CompletionLogprobs),
  stop_reason: OrNull(Type.Union([Text, Type.Integer()])),
};

const whole = { finish_reason: FinishReason };
const part = { finish_reason: OrNull(FinishReason) };
/** In a stream, null until the last event, and absent unless the request asks for it. */
const streamedUsage = { usage: Type.Optional(OrNull(Usage)) };

const ChatCompletion = toObject(
  'chat.completion',
  { message: ChatMessage, logprobs: OrNull(ChatLogprobs), ...whole },
  { usage: Usage },
);
const ChatCompletionChunk = toObject(
  'chat.completion.chunk',
  { delta: ChatDelta, logprobs: OrNull(ChatLogprobs), ...part },
  streamedUsage,
);
const Completion = toObject('text_completion', { ...completionChoice, ...whole }, { usage: Usage });
const CompletionChunk = toObject(
  'text_completion',
  { ...completionChoice, ...part },
  streamedUsage,
);

const streamed =
  'If stream is true: server-sent events, each `data: ` and one such object, and at the end `data: [DONE]`. A stream that fails has an event with `error`.';

/** Documents a response in /openapi.json only: a schema used for serialization would drop members it does not know. */
export const inJson = (schema: object) => ({
  200: { content: { 'application/json': { schema } } },
});

const toResponse = (description: string, plain: object, event: object) => ({
  200: {
    description,
    content: {
      'application/json': { schema: plain },
      'text/event-stream': { schema: { ...event, description: streamed } },
    },
  },
});

export const chatResponses = toResponse(
  'The answer, whole or as a stream.',
  ChatCompletion,
  ChatCompletionChunk,
);
export const completionResponses = toResponse(
  'The continuation, whole or as a stream.',
  Completion,
  CompletionChunk,
);
