// Everything the child refuses a request for, one function per failure. The codes and params are those of the
// inference API.

import { EngineError, toOverflowText } from '#inference/engine.ts';
import { type ModelKind, modelUses } from '#inference/pooling.ts';

function rejected(message: string, code: string, param: string, cause?: unknown): EngineError {
  return new EngineError('rejected', message, { code, param, cause });
}

/** `maxTokens` is null if the request sets none. */
export function contextLengthExceeded(
  window: number,
  promptTokens: number,
  maxTokens: number | null,
  param: 'messages' | 'prompt',
): EngineError {
  const text = toOverflowText({ window, prompt: promptTokens, completion: maxTokens });
  return rejected(text, 'context_length_exceeded', param);
}

export const emptyPrompt = () =>
  rejected('prompt must have at least one token.', 'invalid_value', 'prompt');

export const suffixUnsupported = () =>
  rejected('This model does not support suffix.', 'unsupported_parameter', 'suffix');

export const unknownToken = (token: number, vocabularySize: number, param: string) =>
  rejected(
    `${param} has the token ${token}, but this model's tokens are 0 to ${vocabularySize - 1}.`,
    'invalid_value',
    param,
  );

export const nestedTooDeep = (param: string, maxDepth: number) =>
  rejected(`${param} may be nested at most ${maxDepth} levels deep.`, 'invalid_value', param);

export const textPartsOnly = (messageIndex: number, partIndex: number) =>
  rejected(
    'This model supports content parts of type "text" only.',
    'unsupported_content_type',
    `messages[${messageIndex}].content[${partIndex}].type`,
  );

export const templateRefused = (cause: unknown) =>
  rejected(
    `The model's chat template refuses these messages: ${(cause as Error).message}.`,
    'invalid_value',
    'messages',
    cause,
  );

export const lastMessageLeftOut = () =>
  rejected(
    "continue_final_message can't be used: the model's chat template leaves out the last message.",
    'invalid_value',
    'messages',
  );

export const lastMessageCallsTool = () =>
  rejected(
    "continue_final_message can't be used: the last message ends with a tool call.",
    'invalid_value',
    'messages',
  );

export const continuesAndOpens = () =>
  rejected(
    'continue_final_message continues the last message and add_generation_prompt opens a new one. Set only one of them.',
    'invalid_value',
    'add_generation_prompt',
  );

export const bestOfBelowN = (bestOf: number, n: number) =>
  rejected(`best_of must be at least n (${n}), got ${bestOf}.`, 'invalid_value', 'best_of');

export const tooManyChoices = (choices: number, maxChoices: number) =>
  rejected(
    `A request may have at most ${maxChoices} choices over all its prompts, got ${choices}.`,
    'integer_above_max_value',
    'n',
  );

export const tooManyCompletionTokens = (tokens: number, maxTokens: number) =>
  rejected(
    `All choices together may generate at most ${maxTokens} tokens; this request could reach ${tokens}. Ask for fewer choices or lower max_tokens.`,
    'integer_above_max_value',
    'max_tokens',
  );

export const textTooLong = (place: string, tokens: number, maxTokens: number) =>
  rejected(
    `${place} has ${tokens} tokens; this model reads at most ${maxTokens}. Split it into shorter texts.`,
    'context_length_exceeded',
    place,
  );

export function wrongModelKind(kind: ModelKind, needed: ModelKind): EngineError {
  const { does, endpoint } = modelUses[kind];
  return rejected(
    `This model ${does}: send its requests to ${endpoint}, or name a model that ${modelUses[needed].does}.`,
    'model_not_supported',
    'model',
  );
}

export const grammarNotBuilt = (param: 'tools' | 'response_format') =>
  rejected('No grammar can be built from this schema.', 'invalid_value', param);

export const tooManyWaitingPromptTokens = () =>
  new EngineError('overloaded', 'Too many prompt tokens are waiting to be read. Retry later.');
