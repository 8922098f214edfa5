// Fills in members of a streamed choice that our contract promises and some servers leave out.

import type { Task } from '#inference/engine.ts';

export type Members = Record<string, unknown>;

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const promised = { chat: ['logprobs'], completion: ['logprobs', 'stop_reason'] } as const;

/** Promised members that the server left out; they become null. */
export const toAbsent = (kind: Task['kind'], choice: Members | undefined) =>
  promised[kind].filter((name) => choice !== undefined && !(name in choice));

export function fillAbsent(kind: Task['kind'], choice: Members): void {
  for (const name of promised[kind]) choice[name] ??= null;
}

/**
 * Sets `stop_reason` from `matched_stop`, which SGLang also sends if the model ended by itself. Returns whether
 * the choice may have changed.
 */
export function nameStop(
  { kind, body }: { kind: Task['kind']; body: Pick<Task['body'], 'stop_token_ids'> },
  choice: Members,
): boolean {
  const { matched_stop: matched, stop_reason: named } = choice;
  if (kind === 'chat' || matched == null || named != null) return false;
  const asked = typeof matched === 'string' || body.stop_token_ids?.includes(matched as number);
  if (asked) choice.stop_reason = matched;
  // True in any case, because the same event may mean something else in another stream.
  return true;
}

/** Returns whether anything was filled in. */
export function fillDelta(delta: Members): boolean {
  const isOpening = typeof delta.role === 'string' && delta.content == null;
  // llama-server sends null. A message that opens with a tool call has no text.
  const isFilled = isOpening && delta.tool_calls == null;
  if (isFilled) delta.content = '';
  return fillCalls(delta.tool_calls) || isFilled;
}

/** Adds empty arguments to a call that is opened without any, as by vLLM. */
function fillCalls(calls: unknown): boolean {
  if (!Array.isArray(calls)) return false;
  const opened = calls
    .map((call: unknown) => (isMembers(call) ? call.function : null))
    .filter(isMembers)
    .filter((called) => typeof called.name === 'string' && called.arguments == null);
  for (const called of opened) called.arguments = '';
  return opened.length > 0;
}
