// Wire types of saved conversations and presets. The dashboard uses the same types for the conversation on screen.
// Times are ISO 8601.

import { page } from '#accounts/schema.ts';
import { closed, Maybe, noNul, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

/** The whole body is limited to 4 MiB. */
const Text = Type.String({ maxLength: 4_194_304 });
const Id = Type.String({ minLength: 1, maxLength: 256 });
const Name = Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\p{Cc}]+$' });
const Model = Type.String({ minLength: 1, maxLength: 256 });
const Amount = Maybe(Type.Number());
const Lane = Type.Integer({ minimum: 0, maximum: 1 });

/** Formats that every browser shows and that can't hold scripts. */
const Image = Type.String({
  maxLength: 4_194_304,
  pattern: '^data:image/(png|jpeg|webp|gif);base64,',
});

const ToolCall = Type.Object(
  { id: Id, name: Text, arguments: Text },
  { ...closed, description: 'The arguments are JSON text from the model, not validated.' },
);

const Failure = Type.Object(
  { message: Text, suggestion: Maybe(Text), request_id: Maybe(Id) },
  closed,
);

/** Measurements of a response and how it ended. Unknown values are null. */
const Outcome = Type.Object(
  {
    served_by: Maybe(Type.String({ maxLength: 256 })),
    prompt_tokens: Amount,
    completion_tokens: Amount,
    first_token_ms: Amount,
    tokens_per_second: Amount,
    cost: Amount,
    /** The API's finish_reason, or `stopped` if the user stopped the response. */
    finish: Maybe(Type.String({ maxLength: 64 })),
    failure: Maybe(Failure),
  },
  closed,
);

const Turn = Type.Object(
  {
    id: Id,
    role: OneOf(['user', 'assistant', 'tool']),
    text: Text,
    images: Type.Optional(Type.Array(Image, { maxItems: 8 })),
    /** The model that responded. */
    model: Type.Optional(Model),
    /** Set while two models are compared: which of them the turn belongs to. Otherwise it belongs to both. */
    lane: Type.Optional(Lane),
    reasoning: Type.Optional(Text),
    reasoning_ms: Type.Optional(Type.Number()),
    tool_calls: Type.Optional(Type.Array(ToolCall, { maxItems: 512 })),
    /** On tool results: the id of the tool call. */
    tool_call_id: Type.Optional(Id),
    /** Set on responses that have ended. */
    outcome: Maybe(Outcome),
  },
  closed,
);

/** A null setting uses the model's default. Values out of range are kept: the API refuses them. */
const Sampling = Type.Object(
  {
    temperature: Amount,
    top_p: Amount,
    top_k: Amount,
    min_p: Amount,
    max_tokens: Amount,
    seed: Amount,
    frequency_penalty: Amount,
    presence_penalty: Amount,
    repetition_penalty: Amount,
    stop: Maybe(Text),
  },
  closed,
);

const settings = {
  system: Text,
  settings: Sampling,
  /** JSON as typed, possibly invalid; empty for none. */
  tools: Text,
  schema: Text,
  logprobs: Type.Boolean(),
};

export const PresetSettings = Type.Object(settings, closed);

export const ConversationContent = Type.Object(
  {
    ...settings,
    /** One model, or two that are compared. */
    models: Type.Array(Model, { minItems: 1, maxItems: 2 }),
    turns: Type.Array(Turn, { maxItems: 10_000 }),
  },
  closed,
);

export const NewConversation = Type.Object({ name: Name, content: ConversationContent }, closed);

/** Members that are left out stay unchanged. */
export const ConversationChange = Type.Object(
  {
    name: Maybe(Name),
    shared: Maybe(Type.Boolean()),
    content: Maybe(ConversationContent),
    /** The revision that the new content replaces. Required with `content`. */
    revision: Maybe(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  },
  closed,
);

export const ConversationsQuery = Type.Object(
  { ...page, search: Type.Optional(Type.String({ maxLength: 100, pattern: noNul.notEmpty })) },
  closed,
);

export const NewPreset = Type.Object({ name: Name, settings: PresetSettings }, closed);

/** A row of the list. */
export interface ConversationSummary {
  id: string;
  name: string;
  shared: boolean;
  revision: number;
  created_at: string;
  updated_at: string;
}

export interface Conversation extends ConversationSummary {
  /** True if the caller may change it. Otherwise another member has shared it. */
  own: boolean;
  owner_email: string;
  content: ConversationContent;
}

export interface Preset {
  id: string;
  name: string;
  settings: PresetSettings;
}

export type ConversationContent = Static<typeof ConversationContent>;
export type NewConversation = Static<typeof NewConversation>;
export type ConversationChange = Static<typeof ConversationChange>;
export type PresetSettings = Static<typeof PresetSettings>;
export type NewPreset = Static<typeof NewPreset>;
export type Turn = Static<typeof Turn>;
export type Outcome = Static<typeof Outcome>;
export type ToolCall = Static<typeof ToolCall>;
export type Sampling = Static<typeof Sampling>;
