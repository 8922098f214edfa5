// The choices of an upstream response: which have started and finished, members that our contract promises and some
// servers leave out, and logprobs in the form that completions have.

import { countPrompts, type Task } from '#inference/engine.ts';
import { isMembers, type Members } from '#lib/json-members.ts';

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

/** Gives the first delta of a choice its role, which OpenAI's client requires. Returns whether it had none. */
export function openDelta(choice: Members): boolean {
  const { role, ...delta } = choice.delta as Members;
  if (role === 'assistant') return false;
  choice.delta = { role: 'assistant', ...delta };
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

/** Completes calls that are opened without a type, which OpenAI's client requires, or without arguments, as by vLLM. */
function fillCalls(calls: unknown): boolean {
  return Array.isArray(calls) && calls.filter(isMembers).map(fillCall).includes(true);
}

function fillCall(call: Members): boolean {
  const { function: called, type } = call;
  if (!isMembers(called) || typeof called.name !== 'string') return false;
  const isFilled = type == null || called.arguments == null;
  call.type ??= 'function';
  called.arguments ??= '';
  return isFilled;
}

export class ChoiceProgress {
  /** Choices that the request asks for. */
  readonly expected: number;
  readonly #seen: number[] = [];
  readonly #finished: number[] = [];

  constructor(task: Task) {
    this.expected = (task.body.n ?? 1) * countPrompts(task);
  }

  get hasStarted(): boolean {
    return this.#seen.length > 0;
  }

  get hasAnyFinished(): boolean {
    return this.#finished.length > 0;
  }

  note(index: number, isLast: boolean): void {
    if (!this.#seen.includes(index)) this.#seen.push(index);
    if (isLast) this.#finished.push(index);
  }

  isExpected(index: number): boolean {
    return Number.isInteger(index) && index >= 0 && index < this.expected;
  }

  isSeen(index: number): boolean {
    return this.#seen.includes(index);
  }

  isFinished(index: number): boolean {
    return this.#finished.includes(index);
  }

  /**
   * True if every choice seen has finished. A server may send fewer choices than requested, but if the stream was
   * cut off, the missing ones may have been lost.
   */
  hasFinished(isCut: boolean): boolean {
    const least = isCut ? this.expected : 1;
    return this.#finished.length >= least && this.#finished.length === this.#seen.length;
  }
}

export function indexOf({ index }: { index?: unknown }): number {
  return typeof index === 'number' ? index : 0;
}

interface ChatScores {
  content: {
    token: string;
    logprob: number;
    top_logprobs?: { token: string; logprob: number }[] | null;
  }[];
}

interface TextScores {
  tokens: string[];
  text_offset: number[];
}

/**
 * Converts the logprobs of a text completion in place, if needed: llama-server sends them in chat form, and SGLang omits
 * the offsets of the tokens. `from` is the offset at which the choice's text begins.
 */
export function formScores(choice: { logprobs?: unknown }, from = 0): void {
  const given = choice.logprobs as (Partial<ChatScores> & Partial<TextScores>) | null | undefined;
  if (Array.isArray(given?.tokens) && given.text_offset?.includes(-1) === true)
    given.text_offset = toOffsets(given.tokens, from);
  if (!Array.isArray(given?.content)) return;
  const { content } = given;
  const tokens = content.map(({ token }) => token);
  choice.logprobs = {
    tokens,
    token_logprobs: content.map(({ logprob }) => logprob),
    top_logprobs: content.map(({ top_logprobs }) =>
      Object.fromEntries((top_logprobs ?? []).map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: toOffsets(tokens, from),
  };
}

function toOffsets(tokens: readonly string[], from: number): number[] {
  let at = from;
  return tokens.map((token) => {
    const offset = at;
    at += lengthOf(token);
    return offset;
  });
}

/** Length in code points. */
export const lengthOf = (text: string) => [...text].length;
