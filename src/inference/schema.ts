// The inference API's wire types. These schemas validate requests, generate /openapi.json and are the types that
// engines use. Unknown members are kept: clients of many servers send extras, and engines may use them.

import { unlisted } from '#lib/schema/letter-case.ts';
import { Maybe, OneOf, open, type Static, Type } from '#lib/schema/schema-builder.ts';

/** No bounds here: a number can't hold all 64 bits, so `check.ts` checks the exact value. */
const int64 = { type: 'integer' } as const;

const JsonSchema = Type.Record(Type.String(), Type.Unknown());

const ResponseFormat = Type.Object(
  {
    type: OneOf(['text', 'json_object', 'json_schema']),
    /** The schema in the form of llama-server and others. */
    schema: Maybe(JsonSchema),
    json_schema: Maybe(
      Type.Object(
        {
          name: Type.String({ minLength: 1, maxLength: 64 }),
          description: Maybe(Type.String()),
          schema: Maybe(JsonSchema),
          strict: Maybe(Type.Boolean()),
        },
        open,
      ),
    ),
  },
  open,
);

/** Parsed or compiled whenever it is read. */
const ConstraintText = Type.String({ minLength: 1, maxLength: 262_144 });
const Choices = Type.Array(Type.String({ maxLength: 65_536 }), { minItems: 1, maxItems: 4096 });

/** What the output must be like, in the dialects of OpenAI, vLLM, llama-server and SGLang; see `constraint.ts`. */
const constraints = {
  response_format: Maybe(ResponseFormat),
  structured_outputs: Maybe(
    Type.Object(
      {
        json: Maybe(Type.Union([JsonSchema, ConstraintText])),
        json_object: Maybe(Type.Boolean()),
        regex: Maybe(ConstraintText),
        choice: Maybe(Choices),
        grammar: Maybe(ConstraintText),
        structural_tag: Maybe(Type.Union([JsonSchema, ConstraintText])),
      },
      open,
    ),
  ),
  guided_json: Maybe(Type.Union([JsonSchema, ConstraintText])),
  guided_regex: Maybe(ConstraintText),
  guided_choice: Maybe(Choices),
  guided_grammar: Maybe(ConstraintText),
  grammar: Maybe(ConstraintText),
  json_schema: Maybe(Type.Union([JsonSchema, ConstraintText])),
  regex: Maybe(ConstraintText),
  ebnf: Maybe(ConstraintText),
};

const sampling = {
  model: Type.String({ minLength: 1, maxLength: 256 }),
  stream: Maybe(Type.Boolean()),
  stream_options: Maybe(
    Type.Object(
      {
        include_usage: Maybe(Type.Boolean()),
        continuous_usage_stats: Maybe(Type.Boolean()),
      },
      open,
    ),
  ),
  temperature: Maybe(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: Maybe(Type.Number({ minimum: 0, maximum: 1 })),
  top_k: Maybe(Type.Integer({ minimum: -1, maximum: 1_000_000 })),
  min_p: Maybe(Type.Number({ minimum: 0, maximum: 1 })),
  frequency_penalty: Maybe(Type.Number({ minimum: -2, maximum: 2 })),
  presence_penalty: Maybe(Type.Number({ minimum: -2, maximum: 2 })),
  repetition_penalty: Maybe(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
  seed: Maybe(Type.Unsafe<number | bigint>(int64)),
  stop: Maybe(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 16 })])),
  stop_token_ids: Maybe(Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 128 })),
  include_stop_str_in_output: Maybe(Type.Boolean()),
  ignore_eos: Maybe(Type.Boolean()),
  max_tokens: Maybe(Type.Integer({ minimum: 1 })),
  min_tokens: Maybe(Type.Integer({ minimum: 0 })),
  n: Maybe(Type.Integer({ minimum: 1, maximum: 128 })),
  logit_bias: Maybe(
    Type.Record(Type.String(), Type.Number({ minimum: -100, maximum: 100 }), {
      maxProperties: 1024,
    }),
  ),
  user: Maybe(Type.String({ maxLength: 512 })),
  priority: Maybe(Type.Integer({ minimum: -1000, maximum: 1000 })),
  ...constraints,
};

/** Members of a part that hold media, or say where they are. */
export const mediaMembers = [
  'image_url',
  'video_url',
  'audio_url',
  'image',
  'video',
  'audio',
  'input_audio',
  'file',
  'url',
] as const;

/** Members of those, in which some proxies fetch an address too. */
export const mediaSources = ['file_url', 'file_data', 'file_id', 'data'] as const;

const ContentPart = Type.Object(
  { type: Type.String(), text: Type.Optional(Type.String()) },
  {
    ...open,
    [unlisted]: [...mediaMembers, ...mediaSources],
    description: 'A text part: {"type":"text","text":"..."}.',
  },
);

const RequestToolCall = Type.Object(
  {
    id: Type.String(),
    type: Type.Optional(OneOf(['function'])),
    function: Type.Object({ name: Type.String(), arguments: Type.String() }, open),
  },
  open,
);

export const ChatMessage = Type.Object(
  {
    role: OneOf(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
    content: Maybe(Type.Union([Type.String(), Type.Array(ContentPart, { maxItems: 4096 })])),
    name: Maybe(Type.String({ maxLength: 512 })),
    tool_calls: Maybe(Type.Array(RequestToolCall, { maxItems: 512 })),
    tool_call_id: Maybe(Type.String()),
    /** What the model thought before an earlier response. */
    reasoning_content: Maybe(Type.String()),
    /** The predecessor of tool_calls. */
    function_call: Maybe(Type.Object({ name: Type.String(), arguments: Type.String() }, open)),
  },
  open,
);

const toolName = { minLength: 1, maxLength: 64, pattern: '^[a-zA-Z0-9_-]+$' } as const;

const CallableFunction = Type.Object(
  {
    name: Type.String(toolName),
    description: Maybe(Type.String()),
    parameters: Maybe(Type.Record(Type.String(), Type.Unknown())),
    strict: Maybe(Type.Boolean()),
  },
  open,
);

export const Tool = Type.Object({ type: OneOf(['function']), function: CallableFunction }, open);

/** Members that a client must not set: other names of its limits, and addresses that engines would connect to. */
export const heldBack = [
  'n_predict',
  'n_cmpl',
  'kv_transfer_params',
  'ec_transfer_params',
  'bootstrap_host',
  'bootstrap_port',
  'bootstrap_room',
] as const;

/** vLLM takes further arguments from `vllm_xargs`. */
const openRequest = { ...open, [unlisted]: [...heldBack, 'vllm_xargs'] };

export const ChatRequest = Type.Object(
  {
    ...sampling,
    messages: Type.Array(ChatMessage, { minItems: 1, maxItems: 100_000 }),
    max_completion_tokens: Maybe(Type.Integer({ minimum: 1 })),
    logprobs: Maybe(Type.Boolean()),
    top_logprobs: Maybe(Type.Integer({ minimum: 0, maximum: 20 })),
    tools: Maybe(Type.Array(Tool, { maxItems: 128 })),
    tool_choice: Maybe(
      Type.Union([
        OneOf(['none', 'auto', 'required']),
        Type.Object(
          { type: OneOf(['function']), function: Type.Object({ name: Type.String() }, open) },
          open,
        ),
      ]),
    ),
    parallel_tool_calls: Maybe(Type.Boolean()),
    /** The predecessors of tools and tool_choice; see `apis/chat/endpoint.ts`. */
    functions: Maybe(Type.Array(CallableFunction, { minItems: 1, maxItems: 128 })),
    function_call: Maybe(
      Type.Union([OneOf(['none', 'auto']), Type.Object({ name: Type.String() }, open)]),
    ),
    continue_final_message: Maybe(Type.Boolean()),
    add_generation_prompt: Maybe(Type.Boolean()),
  },
  openRequest,
);

const tokenIds = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });

export const CompletionRequest = Type.Object(
  {
    ...sampling,
    prompt: Type.Union([
      Type.String(),
      Type.Array(Type.String(), { minItems: 1, maxItems: 2048 }),
      tokenIds,
      Type.Array(tokenIds, { minItems: 1, maxItems: 2048 }),
    ]),
    /** Zero, together with `echo`, scores a prompt. */
    max_tokens: Maybe(Type.Integer({ minimum: 0 })),
    logprobs: Maybe(Type.Integer({ minimum: 0, maximum: 5 })),
    prompt_logprobs: Maybe(Type.Integer({ minimum: 0, maximum: 20 })),
    echo: Maybe(Type.Boolean()),
    suffix: Maybe(Type.String()),
    best_of: Maybe(Type.Integer({ minimum: 1, maximum: 20 })),
  },
  openRequest,
);

export const Model = Type.Object(
  {
    id: Type.String(),
    object: Type.Unsafe<'model'>({ type: 'string', const: 'model' }),
    created: Type.Integer(),
    owned_by: Type.String(),
  },
  { $id: 'Model' },
);

export const ModelList = Type.Object({
  object: Type.Unsafe<'list'>({ type: 'string', const: 'list' }),
  data: Type.Array(Model),
});

export type ChatMessage = Static<typeof ChatMessage>;
export type Tool = Static<typeof Tool>;
export type ResponseFormat = Static<typeof ResponseFormat>;
export type ChatRequest = Static<typeof ChatRequest>;
export type CompletionRequest = Static<typeof CompletionRequest>;
export type Model = Static<typeof Model>;
