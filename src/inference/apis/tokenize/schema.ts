// Requests and responses of the tokenizer's API, in vLLM's form.

import { inJson } from '#inference/apis/response-schemas.ts';
import { ChatRequest } from '#inference/schema.ts';
import { Maybe, open, type Static, Type } from '#lib/schema/schema-builder.ts';

const { messages, tools, add_generation_prompt, continue_final_message } = ChatRequest.properties;

/** Either `prompt` or `messages`. */
export const TokenizeRequest = Type.Object(
  {
    model: Type.String(),
    prompt: Type.Optional(Type.String()),
    messages: Type.Optional(messages),
    tools,
    add_generation_prompt,
    continue_final_message,
    /** Default: true for a prompt, false for messages, whose template writes its own. */
    add_special_tokens: Maybe(Type.Boolean()),
    return_token_strs: Maybe(Type.Boolean()),
  },
  open,
);
export type TokenizeRequest = Static<typeof TokenizeRequest>;

export const DetokenizeRequest = Type.Object(
  {
    model: Type.String(),
    tokens: Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 1_000_000 }),
  },
  open,
);

const Tokenized = Type.Object({
  count: Type.Integer(),
  max_model_len: Type.Integer(),
  tokens: Type.Array(Type.Integer()),
  token_strs: Type.Union([Type.Array(Type.String()), Type.Null()]),
});

export const tokenizeResponses = inJson(Tokenized);

export const detokenizeResponses = inJson(Type.Object({ prompt: Type.String() }));
