// Parses a plain response of an upstream and adds the members that the API contract requires and some servers leave
// out. Members that a server adds are kept.

import type { Task } from '#inference/engine.ts';
import { formScores, nameStop } from '#inference/engines/upstream/choices.ts';
import {
  brokenOff,
  describeType,
  isBrokenOff,
  orUnreadable,
  toRefusalFailure,
  unreadable,
} from '#inference/engines/upstream/failures.ts';
import { nameReasoning } from '#inference/engines/upstream/reasoning.ts';
import { findRefusal, type UpstreamRefusal } from '#inference/engines/upstream/refusal-body.ts';
import type { UpstreamServer } from '#inference/engines/upstream/servers.ts';
import {
  type CountText,
  generatedOnly,
  toText,
  toUsage,
  type UsageCheck,
} from '#inference/engines/upstream/usage.ts';
import { estimateTokens } from '#inference/models/tokens.ts';
import type { ThinkTags } from '#inference/think-tags.ts';
import type {
  ChatChoice,
  CompletionChoice,
  EngineResponse,
  Usage,
} from '#inference/wire/response.ts';
import { isMembers, type Members } from '#lib/json-members.ts';
import type { BufferedResponse } from './buffered-response.ts';

/** How the tokens of a plain response are counted. */
export interface ResponseCounting {
  server: UpstreamServer;
  countGenerated?: CountText | undefined;
  check: UsageCheck;
}

/** Throws EngineError if it is not a valid response. */
export async function parseResponse(
  task: Task,
  { headers, text, size }: Pick<BufferedResponse, 'headers' | 'text' | 'size'>,
  counting: ResponseCounting,
): Promise<EngineResponse> {
  const read = readResponse(task, text, describeType(headers));
  if ('refusal' in read) throw toRefusalFailure(read.refusal, task);
  const { response } = read;
  response.usage =
    acceptUsage(response, size, counting) ?? (await countUsage(toText(response.choices), counting));
  return response;
}

/** A response as far as it can be read without the request's messages. */
export type ReadResponse = { response: EngineResponse } | { refusal: UpstreamRefusal | null };

/** The part of a task that is needed for that. */
export interface ResponseTask {
  readonly kind: Task['kind'];
  readonly body: Pick<Task['body'], 'stop_token_ids'>;
  readonly thinkTags?: ThinkTags | undefined;
}

/** Leaves the usage as the server reported it. `type` is the content type. Throws EngineError `unavailable`. */
export function readResponse(task: ResponseTask, text: string, type: string): ReadResponse {
  try {
    return read(task, text, type);
  } catch (error) {
    throw orUnreadable(error);
  }
}

function read(task: ResponseTask, text: string, type: string): ReadResponse {
  const parsed = parse(text);
  if (parsed === null) throw unreadable(`responded with ${type} that is not JSON`);
  if (parsed.error != null || parsed.object === 'error') return { refusal: findRefusal(parsed) };
  const { choices } = parsed;
  if (!Array.isArray(choices) || choices.length === 0)
    throw unreadable('responded without choices');
  parsed.choices = choices.map((choice: Members, index) => {
    if (typeof choice?.finish_reason !== 'string')
      throw unreadable('ended without a finish reason');
    if (isBrokenOff(choice.finish_reason)) throw brokenOff();
    // Some servers send an empty finish_reason, but a plain response is always finished.
    choice.finish_reason ||= 'stop';
    return task.kind === 'chat'
      ? toChatChoice(task, choice, index)
      : toCompletionChoice(task, choice, index);
  });
  return { response: parsed as EngineResponse };
}

/** Null if the server reported no usage, or none that can be true. */
export function acceptUsage(
  { usage, choices }: { usage: unknown; choices: { length: number } },
  responseBytes: number,
  { server, check }: ResponseCounting,
): Usage | null {
  // llama-server reports the usage of the first choice only.
  const isOneOfMany = server === 'llama-server' && choices.length > 1;
  const reported = isOneOfMany ? null : toUsage(usage);
  return reported === null ? null : check.accept(reported, responseBytes);
}

async function countUsage(
  generated: string,
  { countGenerated, check }: ResponseCounting,
): Promise<Usage> {
  const counted = (await countGenerated?.(generated)) ?? estimateTokens(generated);
  return generatedOnly(check.cap(counted));
}

/** Modifies the choice in place: it was just parsed, and nothing else refers to it. */
function toChatChoice({ thinkTags }: ResponseTask, choice: Members, index: number): ChatChoice {
  choice.message ??= {};
  const { message } = choice;
  if (!isMembers(message)) throw unreadable('responded without a message');
  message.role ??= 'assistant';
  message.content ??= null;
  message.function_call ??= null;
  message.refusal ??= null;
  nameReasoning(message, thinkTags);
  const calls = message.tool_calls;
  // vLLM sends an empty list if there are none.
  if (!Array.isArray(calls) || calls.length === 0) message.tool_calls = null;
  choice.index ??= index;
  choice.logprobs ??= null;
  return choice as unknown as ChatChoice;
}

function toCompletionChoice(task: ResponseTask, choice: Members, index: number): CompletionChoice {
  nameStop(task, choice);
  formScores(choice);
  return { index, text: '', logprobs: null, stop_reason: null, ...choice } as CompletionChoice;
}

function parse(text: string): Members | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Members) : null;
  } catch {
    return null;
  }
}
