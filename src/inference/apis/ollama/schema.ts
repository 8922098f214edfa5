// The requests of Ollama's API. Unknown members and options are accepted and left out, as Ollama does.

import { Maybe, OneOf, open, type Static, Type } from '#lib/schema/schema-builder.ts';

const Model = Type.String({ minLength: 1, maxLength: 256 });
const Images = Type.Array(Type.String(), { maxItems: 256 });
const JsonSchema = Type.Record(Type.String(), Type.Unknown());

const Options = Type.Object(
  {
    temperature: Maybe(Type.Number({ minimum: 0 })),
    top_p: Maybe(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: Maybe(Type.Integer({ minimum: -1, maximum: 1_000_000 })),
    min_p: Maybe(Type.Number({ minimum: 0, maximum: 1 })),
    seed: Maybe(Type.Integer()),
    /** Negative: as many as fit. */
    num_predict: Maybe(Type.Integer()),
    stop: Maybe(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 16 })])),
    repeat_penalty: Maybe(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
    presence_penalty: Maybe(Type.Number({ minimum: -2, maximum: 2 })),
    frequency_penalty: Maybe(Type.Number({ minimum: -2, maximum: 2 })),
  },
  open,
);

const shared = {
  model: Model,
  /** True if absent. */
  stream: Maybe(Type.Boolean()),
  /** `json`, or a schema. */
  format: Maybe(Type.Union([OneOf(['json', '']), JsonSchema])),
  options: Maybe(Options),
  /** False for no thoughts, or how much effort to put into them. */
  think: Maybe(Type.Union([Type.Boolean(), OneOf(['low', 'medium', 'high'])])),
};

const Call = Type.Object(
  { function: Type.Object({ name: Type.String(), arguments: Type.Optional(JsonSchema) }, open) },
  open,
);

const Message = Type.Object(
  {
    role: OneOf(['system', 'user', 'assistant', 'tool']),
    content: Maybe(Type.String()),
    thinking: Maybe(Type.String()),
    images: Maybe(Images),
    tool_calls: Maybe(Type.Array(Call, { maxItems: 512 })),
    tool_name: Maybe(Type.String()),
  },
  open,
);

const Tool = Type.Object(
  {
    type: Type.Optional(Type.String()),
    function: Type.Object(
      {
        name: Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-zA-Z0-9_-]+$' }),
        description: Maybe(Type.String()),
        parameters: Maybe(JsonSchema),
      },
      open,
    ),
  },
  open,
);

export const OllamaChatRequest = Type.Object(
  {
    ...shared,
    messages: Maybe(Type.Array(Message, { maxItems: 100_000 })),
    tools: Maybe(Type.Array(Tool, { maxItems: 128 })),
  },
  open,
);

export const OllamaGenerateRequest = Type.Object(
  {
    ...shared,
    prompt: Maybe(Type.String()),
    system: Maybe(Type.String()),
    suffix: Maybe(Type.String()),
    images: Maybe(Images),
    /** The prompt is not put into the model's template. */
    raw: Maybe(Type.Boolean()),
  },
  open,
);

export const OllamaEmbedRequest = Type.Object(
  {
    model: Model,
    input: Type.Union([
      Type.String({ minLength: 1 }),
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 2048 }),
    ]),
    dimensions: Maybe(Type.Integer({ minimum: 1 })),
  },
  open,
);

export type OllamaMessage = Static<typeof Message>;
export type OllamaChatRequest = Static<typeof OllamaChatRequest>;
export type OllamaGenerateRequest = Static<typeof OllamaGenerateRequest>;
