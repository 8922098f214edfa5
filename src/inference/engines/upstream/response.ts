// A plain answer as an upstream gives it, with the members that our contract promises and some servers
// leave out. What they add stays.

import type {
  ChatChoice,
  CompletionChoice,
  EngineResponse,
  Task,
  Usage,
} from '#inference/engine.ts';
import { estimateTokens } from '#inference/models/tokens.ts';
import type { WholeAnswer } from './buffered-response.ts';
import { isMembers, type Members, nameStop } from './choice-members.ts';
import { formScores } from './completion-logprobs.ts';
import type { UpstreamServer } from './count-tokens.ts';
import { brokenOff, isBrokenOff, orUnreadable, toRefusalFailure, unavailable } from './failures.ts';
import { type CountText, toText } from './generated-text.ts';
import { findRefusal, type UpstreamRefusal } from './refusal-body.ts';
import { generatedOnly, toUsage } from './usage.ts';
import type { UsageCheck } from './usage-check.ts';

export interface Counting {
  server: UpstreamServer;
  countGenerated?: CountText | undefined;
  check: UsageCheck;
}

/** Throws EngineError when it is no answer. To be waited for only where it has to be counted. */
export function parseAnswer(
  task: Task,
  { headers, text, size }: Pick<WholeAnswer, 'headers' | 'text' | 'size'>,
  counting: Counting,
): EngineResponse | Promise<EngineResponse> {
  const read = readAnswer(task, text, describeType(headers));
  if ('refusal' in read) throw toRefusalFailure(read.refusal, task);
  const { answer } = read;
  const counts = acceptUsage(answer, size, counting);
  if (counts === null) return countAnswer(answer, toText(answer.choices), counting);
  answer.usage = counts;
  return answer;
}

/** A whole answer as far as it can be read without the request's messages. */
export type ReadAnswer = { answer: EngineResponse } | { refusal: UpstreamRefusal | null };

/** What has to be known of a task for that. */
export interface AnswerTask {
  readonly kind: Task['kind'];
  readonly body: Pick<Task['body'], 'stop_token_ids'>;
}

/** With the usage that the server gave. `type` is what it calls its answer. Throws EngineError `unavailable`. */
export function readAnswer(task: AnswerTask, text: string, type: string): ReadAnswer {
  try {
    return read(task, text, type);
  } catch (error) {
    throw orUnreadable(error);
  }
}

function read(task: AnswerTask, text: string, type: string): ReadAnswer {
  const parsed = parse(text);
  if (parsed === null) throw unavailable(`answered with ${type} that is no JSON`);
  if (parsed.error != null || parsed.object === 'error') return { refusal: findRefusal(parsed) };
  const { choices } = parsed;
  if (!Array.isArray(choices) || choices.length === 0)
    throw unavailable('answered without choices');
  parsed.choices = choices.map((choice: Members, index) => {
    if (typeof choice?.finish_reason !== 'string')
      throw unavailable('ended without a finish reason');
    if (isBrokenOff(choice.finish_reason)) throw brokenOff();
    // The answer is whole, so it has ended.
    choice.finish_reason ||= 'stop';
    return task.kind === 'chat'
      ? toChatChoice(choice, index)
      : toCompletionChoice(task, choice, index);
  });
  return { answer: parsed as EngineResponse };
}

/** Null when the server said nothing that can be true. */
export function acceptUsage(
  { usage, choices }: { usage: unknown; choices: { length: number } },
  responseBytes: number,
  { server, check }: Counting,
): Usage | null {
  // llama-server tells that of the first choice alone.
  const isOneOfMany = server === 'llama-server' && choices.length > 1;
  const reported = isOneOfMany ? null : toUsage(usage);
  return reported === null ? null : check.accept(reported, responseBytes);
}

async function countAnswer(
  answer: EngineResponse,
  said: string,
  { countGenerated, check }: Counting,
): Promise<EngineResponse> {
  const counted = (await countGenerated?.(said)) ?? estimateTokens(said);
  answer.usage = generatedOnly(check.cap(counted));
  return answer;
}

/** Filled in where it stands: it was parsed a moment ago and is nobody else's. */
function toChatChoice(choice: Members, index: number): ChatChoice {
  choice.message ??= {};
  const { message } = choice;
  if (!isMembers(message)) throw unavailable('answered without a message');
  message.role ??= 'assistant';
  message.content ??= null;
  message.function_call ??= null;
  message.refusal ??= null;
  const calls = message.tool_calls;
  // vLLM says "none" with an empty list.
  if (!Array.isArray(calls) || calls.length === 0) message.tool_calls = null;
  choice.index ??= index;
  choice.logprobs ??= null;
  return choice as unknown as ChatChoice;
}

function toCompletionChoice(task: AnswerTask, choice: Members, index: number): CompletionChoice {
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

/** A content type without what may follow it, if it is one. */
export function describeType(headers: { 'content-type'?: string | undefined }): string {
  return /^[\w.+-]+\/[\w.+-]+/.exec(headers['content-type'] ?? '')?.[0].slice(0, 60) ?? 'something';
}
