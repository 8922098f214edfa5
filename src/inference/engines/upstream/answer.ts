// A plain answer as an upstream gives it, with the members that our contract promises and some servers
// leave out. What they add stays.

import type { ChatChoice, CompletionChoice, EngineResponse, Task } from '#inference/engine.ts';
import { estimateTokens } from '#inference/models/tokens.ts';
import type { WholeAnswer } from './buffered-response.ts';
import { isMembers, type Members, nameStop } from './choice-members.ts';
import { formScores } from './completion-logprobs.ts';
import type { UpstreamServer } from './count-tokens.ts';
import { brokenOff, isBrokenOff, orUnreadable, toEventFailure, unavailable } from './failures.ts';
import { type CountText, toText } from './generated-text.ts';
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
  whole: WholeAnswer,
  counting: Counting,
): EngineResponse | Promise<EngineResponse> {
  try {
    return read(task, whole, counting);
  } catch (error) {
    throw orUnreadable(error);
  }
}

function read(
  task: Task,
  { headers, text }: WholeAnswer,
  { server, countGenerated, check }: Counting,
): EngineResponse | Promise<EngineResponse> {
  const parsed = parse(text);
  if (parsed === null) throw unavailable(`answered with ${describeType(headers)} that is no JSON`);
  if (parsed.error != null || parsed.object === 'error') throw toEventFailure(parsed, task);
  const { usage, choices } = parsed;
  if (!Array.isArray(choices) || choices.length === 0)
    throw unavailable('answered without choices');
  const complete = choices.map((choice: Members, index) => {
    if (typeof choice?.finish_reason !== 'string')
      throw unavailable('ended without a finish reason');
    if (isBrokenOff(choice.finish_reason)) throw brokenOff();
    // The answer is whole, so it has ended.
    choice.finish_reason ||= 'stop';
    return task.kind === 'chat'
      ? toChatChoice(choice, index)
      : toCompletionChoice(task, choice, index);
  });
  parsed.choices = complete;
  const answer = parsed as EngineResponse;
  // llama-server tells that of the first choice alone.
  const isOneOfMany = server === 'llama-server' && choices.length > 1;
  const reported = isOneOfMany ? null : toUsage(usage);
  const counts = reported === null ? null : check.accept(reported, Buffer.byteLength(text));
  if (counts === null) return countAnswer(answer, toText(choices), countGenerated, check);
  answer.usage = counts;
  return answer;
}

async function countAnswer(
  answer: EngineResponse,
  said: string,
  countGenerated: CountText | undefined,
  check: UsageCheck,
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

function toCompletionChoice(task: Task, choice: Members, index: number): CompletionChoice {
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
