// Checks of a chat that a schema can't express: members that are only valid together.

import { checkSampling } from '#inference/apis/check-sampling.ts';
import { findConstraint } from '#inference/constraint.ts';
import { type InferenceError, invalidValue, missingParameter } from '#inference/errors.ts';
import type { ChatMessage, ChatRequest } from '#inference/schema.ts';

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
