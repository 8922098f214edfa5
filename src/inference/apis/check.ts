// Checks of chats and text completions that a schema can't express: members that are only valid together.

import { rawIntegers, type WithRawIntegers } from '#http/body/json.ts';
import { findConstraint, findConstraints } from '#inference/constraint.ts';
import {
  type InferenceError,
  invalidRequest,
  invalidValue,
  missingParameter,
} from '#inference/errors.ts';
import type { ChatMessage, ChatRequest, CompletionRequest } from '#inference/schema.ts';

/** Throws InferenceError. A seed too long for a number is replaced by its exact value. */
function checkSampling(body: (ChatRequest | CompletionRequest) & WithRawIntegers): void {
  readSeed(body);
  if (body.stream_options != null && body.stream !== true) {
    throw invalidValue('stream_options', 'stream_options requires that stream is true.');
  }
  const maxCompletion = 'max_completion_tokens' in body ? body.max_completion_tokens : null;
  const maxTokens = maxCompletion ?? body.max_tokens;
  if (body.min_tokens != null && maxTokens != null && body.min_tokens > maxTokens) {
    throw invalidValue(
      'min_tokens',
      `min_tokens must not exceed max_tokens (${maxTokens}), got ${body.min_tokens}.`,
    );
  }
  refuseOtherName(body, 'n_predict', 'max_tokens', maxTokens ?? null);
  refuseOtherName(body, 'n_cmpl', 'n', body.n ?? 1);
  if ([body.stop ?? []].flat().includes('')) {
    throw invalidValue('stop', 'A stop string must have at least one character.');
  }
  checkConstraints(body);
  for (const id of Object.keys(body.logit_bias ?? {})) {
    if (!/^\d{1,10}$/.test(id)) {
      throw invalidValue('logit_bias', 'The keys of logit_bias must be token ids, such as "42".');
    }
  }
}

/**
 * llama-server has names of its own for what limits a response, and prefers them. Limits of the caller and the bill
 * follow `value`, so the other name must not contradict it.
 */
function refuseOtherName(body: object, other: string, name: string, value: number | null): void {
  const given = (body as Record<string, unknown>)[other];
  if (given == null || given === value) return;
  throw invalidValue(other, `${other} is another name of ${name}. Send ${name} instead.`);
}

function checkConstraints(body: ChatRequest | CompletionRequest): void {
  const format = body.response_format;
  if (format?.type === 'json_schema' && (format.json_schema?.schema ?? format.schema) == null) {
    throw missingParameter('response_format.json_schema.schema');
  }
  const [one, other] = findConstraints(body);
  if (one?.kind === 'json_schema' && one.schema === undefined) {
    throw invalidValue(one.param, `${one.param} must be a JSON Schema, got text that is not JSON.`);
  }
  if (one !== undefined && other !== undefined) {
    throw invalidValue(
      other.param,
      `${one.param} and ${other.param} exclude each other. Send only one of the two.`,
    );
  }
}

function readSeed(body: (ChatRequest | CompletionRequest) & WithRawIntegers): void {
  const digits = body[rawIntegers]?.seed;
  if (typeof body.seed !== 'number' || Number.isSafeInteger(body.seed)) return;
  // If the seed is given more than once, the last one counts. If it is not written as digits, the number's value
  // counts.
  const seed = BigInt(digits !== undefined && Number(digits) === body.seed ? digits : body.seed);
  if (BigInt.asIntN(64, seed) !== seed) throw invalidValue('seed', 'seed must fit in 64 bits.');
  body.seed = seed;
}

/** Throws InferenceError. The schema's own checks run first. */
export function checkChat(body: ChatRequest): void {
  checkSampling(body);
  body.messages.forEach(checkMessage);
  if (body.top_logprobs != null && body.logprobs !== true) {
    throw invalidValue('top_logprobs', 'top_logprobs requires that logprobs is true.');
  }
  if (body.continue_final_message === true) checkContinuation(body);
  checkFunctions(body);
  checkTools(body);
}

function checkMessage(message: ChatMessage, index: number): void {
  const at = `messages[${index}]`;
  if (message.content == null) {
    const hasCall = Boolean(message.tool_calls?.length) || message.function_call != null;
    if (message.role !== 'assistant' || !hasCall) {
      throw missingParameter(`${at}.content`);
    }
  } else if (typeof message.content !== 'string') {
    message.content.forEach((part, number) => {
      const place = `${at}.content[${number}]`;
      // The model's backend checks other kinds of parts.
      if (part.type === 'text' && part.text === undefined) throw missingParameter(`${place}.text`);
    });
  }
  if (message.role === 'tool' && message.tool_call_id == null) {
    throw missingParameter(`${at}.tool_call_id`);
  }
  if (message.role === 'function' && message.name == null) throw missingParameter(`${at}.name`);
}

function checkContinuation({ messages, add_generation_prompt }: ChatRequest): void {
  if (add_generation_prompt === true) {
    throw invalidValue(
      'add_generation_prompt',
      'continue_final_message and add_generation_prompt exclude each other.',
    );
  }
  if (messages.at(-1)?.role !== 'assistant') {
    throw invalidValue(
      'messages',
      'continue_final_message requires that the last message is the assistant’s.',
    );
  }
}

function checkFunctions(body: ChatRequest): void {
  const { functions, function_call: choice, tools, tool_choice } = body;
  if (functions == null && choice == null) return;
  if (tools != null || tool_choice != null) {
    throw invalidValue(
      'functions',
      'tools replaces functions and function_call: send only one of the two.',
    );
  }
  const names = (functions ?? []).map(({ name }) => name);
  checkNames(names, (index) => `functions[${index}].name`);
  if (choice == null || choice === 'none') return;
  if (names.length === 0) {
    throw invalidValue('function_call', 'function_call is only allowed together with functions.');
  }
  if (typeof choice === 'object' && !names.includes(choice.name)) {
    throw invalidValue(
      'function_call.name',
      'function_call names a function that is not in functions.',
    );
  }
  if (typeof choice === 'object') refuseConstraint(body);
}

function checkNames(names: readonly string[], toParam: (index: number) => string): void {
  const seen = new Set<string>();
  for (const [index, name] of names.entries()) {
    if (seen.has(name)) throw invalidValue(toParam(index), 'Two tools have the same name.');
    seen.add(name);
  }
}

/** For requests that demand a tool call. */
function refuseConstraint(body: ChatRequest): void {
  const constraint = findConstraint(body);
  if (constraint === null) return;
  const [param = constraint.param] = constraint.param.split('.');
  throw invalidValue(
    param,
    `A required tool call and ${param} exclude each other. Send only one of the two.`,
  );
}

function checkTools(body: ChatRequest): void {
  const { tools, tool_choice: choice } = body;
  const names = (tools ?? []).map((tool) => tool.function.name);
  checkNames(names, (index) => `tools[${index}].function.name`);
  if (choice == null || choice === 'none') return;
  if (names.length === 0) throw toolsMissing();
  if (typeof choice === 'object' && !names.includes(choice.function.name)) {
    throw invalidValue(
      'tool_choice.function.name',
      'tool_choice names a tool that is not in tools.',
    );
  }
  if (choice !== 'auto') refuseConstraint(body);
}

const toolsMissing = (): InferenceError =>
  invalidValue('tool_choice', 'tool_choice is only allowed together with tools.');

/** Throws InferenceError. */
export function checkCompletion(body: CompletionRequest): void {
  checkSampling(body);
  const { best_of: bestOf, n } = body;
  if (body.max_tokens === 0 && body.echo !== true) {
    throw invalidRequest(
      'integer_below_min_value',
      'max_tokens',
      'max_tokens must be at least 1 unless echo is true, got 0.',
    );
  }
  if (bestOf != null && bestOf < (n ?? 1)) {
    throw invalidValue('best_of', `best_of must be at least n (${n ?? 1}), got ${bestOf}.`);
  }
  if (bestOf != null && bestOf > (n ?? 1) && body.stream === true) {
    throw invalidValue(
      'best_of',
      'best_of chooses among finished texts, so it cannot be streamed.',
    );
  }
}
