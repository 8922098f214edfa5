// What our contract promises of a streamed choice and some servers leave out.

import type { Task } from '../../engine.ts';

export type Members = Record<string, unknown>;

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const promised = { chat: ['logprobs'], completion: ['logprobs', 'stop_reason'] } as const;

/** Those that are null where a server says nothing. */
export const toAbsent = (kind: Task['kind'], choice: Members | undefined) =>
  promised[kind].filter((name) => choice !== undefined && !(name in choice));

export function fillAbsent(kind: Task['kind'], choice: Members): void {
  for (const name of promised[kind]) choice[name] ??= null;
}

/** Tells whether something was put in. */
export function fillDelta(delta: Members): boolean {
  const isOpening = typeof delta.role === 'string' && delta.content == null;
  // llama-server says null. A message that opens with a call has no text.
  const isFilled = isOpening && delta.tool_calls == null;
  if (isFilled) delta.content = '';
  return fillCalls(delta.tool_calls) || isFilled;
}

/** A call that is opened has arguments, if only none yet; vLLM leaves them out. */
function fillCalls(calls: unknown): boolean {
  if (!Array.isArray(calls)) return false;
  const opened = calls
    .map((call: unknown) => (isMembers(call) ? call.function : null))
    .filter(isMembers)
    .filter((called) => typeof called.name === 'string' && called.arguments == null);
  for (const called of opened) called.arguments = '';
  return opened.length > 0;
}
