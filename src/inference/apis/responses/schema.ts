// The wire types of OpenAI's Responses API. Unknown members are kept, and members that only one
// kind of item or tool has are optional here: `to-task.ts` demands those that it needs.

import { Maybe, OneOf, open, type Static, Type } from '#lib/schema/schema-builder.ts';

/** A part of a message, of a tool's output or of a reasoning item. */
export const ContentPart = Type.Object(
  {
    type: Type.String(),
    text: Maybe(Type.String()),
    refusal: Maybe(Type.String()),
    image_url: Maybe(Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())])),
    detail: Maybe(Type.String()),
    file_data: Maybe(Type.String()),
    file_id: Maybe(Type.String()),
    file_url: Maybe(Type.String()),
    filename: Maybe(Type.String()),
  },
  open,
);

const Parts = Type.Array(ContentPart, { maxItems: 4096 });

const toolMembers = {
  type: Type.String({ maxLength: 64 }),
  /** Name of a function, a custom tool or a namespace. */
  name: Maybe(Type.String({ minLength: 1, maxLength: 128 })),
  description: Maybe(Type.String()),
  parameters: Maybe(Type.Record(Type.String(), Type.Unknown())),
  strict: Maybe(Type.Boolean()),
  /** What a custom tool's input must be like. */
  format: Maybe(
    Type.Object(
      {
        type: OneOf(['text', 'grammar']),
        syntax: Maybe(OneOf(['lark', 'regex'])),
        definition: Maybe(Type.String({ maxLength: 262_144 })),
      },
      open,
    ),
  ),
  /** Where a tool search is executed. */
  execution: Maybe(OneOf(['server', 'client'])),
};

const InnerTool = Type.Object(toolMembers, open);

const Tool = Type.Object(
  {
    ...toolMembers,
    /** The tools of a namespace. */
    tools: Maybe(Type.Array(InnerTool, { maxItems: 512 })),
  },
  open,
);

const Tools = Type.Array(Tool, { maxItems: 512 });

/** One item of a conversation: a message, a call, its output, what the model thought. */
export const InputItem = Type.Object(
  {
    /** Absent for messages in their short form, and for references. */
    type: Maybe(Type.String({ maxLength: 64 })),
    id: Maybe(Type.String({ maxLength: 512 })),
    status: Maybe(Type.String({ maxLength: 64 })),
    role: Maybe(OneOf(['user', 'assistant', 'system', 'developer'])),
    content: Maybe(Type.Union([Type.String(), Parts])),
    call_id: Maybe(Type.String({ maxLength: 512 })),
    name: Maybe(Type.String({ maxLength: 128 })),
    namespace: Maybe(Type.String({ maxLength: 128 })),
    /** A string in function calls, any value in tool searches. */
    arguments: Type.Optional(Type.Unknown()),
    input: Maybe(Type.String()),
    action: Maybe(Type.Record(Type.String(), Type.Unknown())),
    output: Maybe(Type.Union([Type.String(), Type.Array(Type.Unknown(), { maxItems: 4096 })])),
    summary: Maybe(Type.Array(ContentPart, { maxItems: 4096 })),
    encrypted_content: Maybe(Type.String()),
    /** The tools that a tool search found. */
    tools: Maybe(Tools),
  },
  open,
);

const TextFormat = Type.Object(
  {
    type: OneOf(['text', 'json_object', 'json_schema']),
    name: Maybe(Type.String({ minLength: 1, maxLength: 64 })),
    description: Maybe(Type.String()),
    schema: Maybe(Type.Record(Type.String(), Type.Unknown())),
    strict: Maybe(Type.Boolean()),
  },
  open,
);

const ToolChoice = Type.Union([
  OneOf(['none', 'auto', 'required']),
  Type.Object(
    {
      type: Type.String({ maxLength: 64 }),
      name: Maybe(Type.String({ maxLength: 128 })),
      namespace: Maybe(Type.String({ maxLength: 128 })),
      mode: Maybe(OneOf(['auto', 'required'])),
      tools: Maybe(Type.Array(Type.Object({ type: Type.String() }, open), { maxItems: 512 })),
    },
    open,
  ),
]);

/** Members that say what the model reads. They are all that counting needs. */
const prompt = {
  model: Type.String({ minLength: 1, maxLength: 256 }),
  input: Maybe(Type.Union([Type.String(), Type.Array(InputItem, { maxItems: 100_000 })])),
  instructions: Maybe(Type.String()),
  previous_response_id: Maybe(Type.String({ maxLength: 256, pattern: '^[\\w-]*$' })),
  conversation: Type.Optional(Type.Unknown()),
  prompt: Type.Optional(Type.Unknown()),
  tools: Maybe(Tools),
  tool_choice: Maybe(ToolChoice),
  parallel_tool_calls: Maybe(Type.Boolean()),
  text: Maybe(
    Type.Object(
      { format: Maybe(TextFormat), verbosity: Maybe(OneOf(['low', 'medium', 'high'])) },
      open,
    ),
  ),
  reasoning: Maybe(
    Type.Object(
      {
        effort: Maybe(Type.String({ maxLength: 32 })),
        summary: Maybe(Type.String({ maxLength: 32 })),
      },
      open,
    ),
  ),
  truncation: Maybe(OneOf(['auto', 'disabled'])),
  prompt_cache_key: Maybe(Type.String({ maxLength: 512 })),
};

export const ResponseRequest = Type.Object(
  {
    ...prompt,
    stream: Maybe(Type.Boolean()),
    stream_options: Maybe(Type.Object({ include_obfuscation: Maybe(Type.Boolean()) }, open)),
    store: Maybe(Type.Boolean()),
    background: Maybe(Type.Boolean()),
    include: Maybe(Type.Array(Type.String({ maxLength: 128 }), { maxItems: 64 })),
    max_output_tokens: Maybe(Type.Integer({ minimum: 1 })),
    /** Bounds the calls of hosted tools, of which there are none here. */
    max_tool_calls: Maybe(Type.Integer({ minimum: 1 })),
    temperature: Maybe(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: Maybe(Type.Number({ minimum: 0, maximum: 1 })),
    top_logprobs: Maybe(Type.Integer({ minimum: 0, maximum: 20 })),
    metadata: Maybe(
      Type.Record(Type.String(), Type.String({ maxLength: 512 }), { maxProperties: 16 }),
    ),
    client_metadata: Maybe(Type.Record(Type.String(), Type.Unknown())),
    service_tier: Maybe(Type.String({ maxLength: 32 })),
    user: Maybe(Type.String({ maxLength: 512 })),
    safety_identifier: Maybe(Type.String({ maxLength: 512 })),
  },
  open,
);

export const InputTokensRequest = Type.Object(prompt, open);

export const CompactRequest = Type.Object(
  {
    model: prompt.model,
    input: prompt.input,
    instructions: prompt.instructions,
    previous_response_id: prompt.previous_response_id,
    prompt_cache_key: prompt.prompt_cache_key,
  },
  open,
);

export type ContentPart = Static<typeof ContentPart>;
export type InputItem = Static<typeof InputItem>;
export type ResponseTool = Static<typeof Tool>;
export type ResponseToolChoice = Static<typeof ToolChoice>;
export type ResponseRequest = Static<typeof ResponseRequest>;
export type InputTokensRequest = Static<typeof InputTokensRequest>;
export type CompactRequest = Static<typeof CompactRequest>;

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export interface OutputText {
  type: 'output_text';
  text: string;
  annotations: [];
  logprobs: OutputLogprob[];
}

export interface OutputLogprob {
  token: string;
  bytes: number[] | null;
  logprob: number;
  top_logprobs: { token: string; bytes: number[] | null; logprob: number }[];
}

export interface MessageItem {
  id: `msg_${string}`;
  type: 'message';
  status: ItemStatus;
  role: 'assistant';
  content: OutputText[];
}

export interface ReasoningItem {
  id: `rs_${string}`;
  type: 'reasoning';
  status: ItemStatus;
  summary: [];
  content: { type: 'reasoning_text'; text: string }[];
  /** The text, sealed by this server; present once the item is done, if `include` asks for it. */
  encrypted_content?: string;
}

export interface FunctionCallItem {
  id: `fc_${string}`;
  type: 'function_call';
  status: ItemStatus;
  call_id: string;
  name: string;
  /** The namespace in which the request lists the function. */
  namespace?: string;
  arguments: string;
}

export interface CustomToolCallItem {
  id: `ctc_${string}`;
  type: 'custom_tool_call';
  status: ItemStatus;
  call_id: string;
  name: string;
  namespace?: string;
  input: string;
}

export interface LocalShellCallItem {
  id: `lsh_${string}`;
  type: 'local_shell_call';
  status: ItemStatus;
  call_id: string;
  action: {
    type: 'exec';
    command: string[];
    env: Record<string, string>;
    timeout_ms?: number;
    working_directory?: string;
    user?: string;
  };
}

export interface ToolSearchCallItem {
  id: `tsc_${string}`;
  type: 'tool_search_call';
  status: ItemStatus;
  call_id: string;
  execution: 'client';
  arguments: unknown;
}

export type CallItem =
  | FunctionCallItem
  | CustomToolCallItem
  | LocalShellCallItem
  | ToolSearchCallItem;

export type OutputItem = MessageItem | ReasoningItem | CallItem;

export interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

export type ResponseStatus =
  | 'queued'
  | 'in_progress'
  | 'completed'
  | 'incomplete'
  | 'failed'
  | 'cancelled';

export interface ResponseObject {
  id: `resp_${string}`;
  object: 'response';
  /** Unix seconds. */
  created_at: number;
  completed_at: number | null;
  status: ResponseStatus;
  error: { code: string; message: string } | null;
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null;
  model: string;
  output: OutputItem[];
  usage: ResponseUsage | null;
  background: boolean;
  instructions: string | null;
  max_output_tokens: number | null;
  max_tool_calls: number | null;
  metadata: Record<string, string>;
  parallel_tool_calls: boolean;
  previous_response_id: string | null;
  prompt_cache_key: string | null;
  reasoning: { effort: string | null; summary: string | null };
  safety_identifier: string | null;
  service_tier: 'default';
  store: boolean;
  temperature: number | null;
  text: NonNullable<ResponseRequest['text']>;
  tool_choice: ResponseToolChoice;
  tools: ResponseTool[];
  top_logprobs: number;
  top_p: number | null;
  truncation: 'auto' | 'disabled';
  user: string | null;
}

export interface CompactionItem {
  id: `cmp_${string}`;
  type: 'compaction';
  /** The summary of the conversation, sealed by this server. */
  encrypted_content: string;
}

export interface CompactedResponse {
  id: `resp_${string}`;
  object: 'response.compaction';
  created_at: number;
  /** The newest messages that are not the model's, then the summary of everything. */
  output: (InputItem | CompactionItem)[];
  usage: ResponseUsage;
}
