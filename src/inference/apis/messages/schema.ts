// The wire types of Anthropic's Messages API. They are open on purpose: clients send members,
// blocks and tools that only some servers know, and expect those to be ignored.

import { Maybe, OneOf, open, type Static, Type } from '#lib/schema/schema-builder.ts';

/** Every kind of block. `translate.ts` reads the members of those it knows. */
const Block = Type.Object(
  { type: Type.String({ maxLength: 128 }), text: Type.Optional(Type.String()) },
  {
    ...open,
    description: 'A text block: {"type":"text","text":"..."}. Unknown blocks are ignored.',
  },
);

const Content = Type.Union([Type.String(), Type.Array(Block, { maxItems: 100_000 })]);

const Message = Type.Object(
  { role: OneOf(['user', 'assistant', 'system']), content: Content },
  open,
);

const Tool = Type.Object(
  {
    name: Maybe(Type.String({ maxLength: 256 })),
    description: Maybe(Type.String()),
    input_schema: Maybe(Type.Record(Type.String(), Type.Unknown())),
    strict: Maybe(Type.Boolean()),
  },
  {
    ...open,
    description: 'Tools without an input_schema are ignored: this server runs none itself.',
  },
);

const ToolChoice = Type.Object(
  {
    type: OneOf(['auto', 'any', 'tool', 'none']),
    name: Maybe(Type.String({ maxLength: 256 })),
    disable_parallel_tool_use: Maybe(Type.Boolean()),
  },
  open,
);

const OutputFormat = Type.Object(
  { type: Type.String(), schema: Maybe(Type.Record(Type.String(), Type.Unknown())) },
  open,
);

const prompt = {
  model: Type.String({ minLength: 1, maxLength: 256 }),
  messages: Type.Array(Message, { minItems: 1, maxItems: 100_000 }),
  system: Maybe(Content),
  tools: Maybe(Type.Array(Tool, { maxItems: 4096 })),
  tool_choice: Maybe(ToolChoice),
};

/** The members that decide how many tokens the prompt has. */
export const CountTokensRequest = Type.Object(prompt, open);

export const MessagesRequest = Type.Object(
  {
    ...prompt,
    /** Zero reads the prompt into the cache and generates nothing. */
    max_tokens: Type.Integer({ minimum: 0 }),
    stream: Maybe(Type.Boolean()),
    stop_sequences: Maybe(Type.Array(Type.String(), { maxItems: 16 })),
    temperature: Maybe(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: Maybe(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: Maybe(Type.Integer({ minimum: -1, maximum: 1_000_000 })),
    output_config: Maybe(Type.Object({ format: Maybe(OutputFormat) }, open)),
    /** The predecessor of `output_config.format`. */
    output_format: Maybe(OutputFormat),
    metadata: Maybe(Type.Object({ user_id: Maybe(Type.String()) }, open)),
  },
  open,
);

export type Block = Static<typeof Block>;
export type Content = Static<typeof Content>;
export type Message = Static<typeof Message>;
export type Tool = Static<typeof Tool>;
export type CountTokensRequest = Static<typeof CountTokensRequest>;
export type MessagesRequest = Static<typeof MessagesRequest>;
