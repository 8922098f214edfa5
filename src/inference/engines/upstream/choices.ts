// The choices of an upstream response: which have started and finished, members that our contract promises and some
// servers leave out, logprobs in the form that completions have, and which tool call each piece of a stream belongs to.

import { countPrompts, type Task } from '#inference/engine.ts';
import { isMembers, type Members, textOf } from '#lib/json-members.ts';

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
 * Converts the logprobs of a text completion in place, if needed: llama-server sends them in chat
 * form, and SGLang omits the offsets of the tokens. `from` is the offset at which the choice's text
 * begins.
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

interface NumberedCall {
  readonly number: number;
  /** The number that the server gave; null if it gave none. */
  readonly given: number | null;
  id: string;
  name: string;
}

/** A list of calls that is not empty. */
const callPieces = /"tool_calls"\s*:\s*\[\s*\{/;

/**
 * Numbers the tool calls of a stream. Clients join the pieces of a call by its number, which some
 * servers leave out, and others give to several calls.
 */
export class CallNumbers {
  /** One entry per choice. */
  readonly #choices: ChoiceCalls[] = [];
  #isChanged = false;

  /** True if the text of a choice may hold pieces that must be parsed to be numbered. */
  mustParse(choice: string): boolean {
    // Without the first quote, V8 finds it three times as fast: JSON has few of these letters, and many quotes.
    const at = choice.includes('tool_calls"') ? choice.search(callPieces) : -1;
    if (at === -1) return false;
    const isKnown = this.#choices.length > 0 && !this.#isChanged && choice.includes('"index"', at);
    return !isKnown || choice.includes('"name"', at);
  }

  /** Numbers the pieces of a delta. Returns true if any was changed. */
  apply(choice: number, pieces: unknown): boolean {
    if (!Array.isArray(pieces) || pieces.length === 0) return false;
    this.#choices[choice] ??= new ChoiceCalls();
    const isChanged = this.#choices[choice].apply(pieces.filter(isMembers));
    this.#isChanged ||= isChanged;
    return isChanged;
  }
}

class ChoiceCalls {
  /** By the number that the server gave. */
  readonly #byIndex = new Map<number, NumberedCall>();
  readonly #byId = new Map<string, NumberedCall>();
  readonly #used = new Set<number>();
  #last: NumberedCall | null = null;
  /** Larger than all numbers in use. */
  #next = 0;

  apply(pieces: readonly Members[]): boolean {
    return pieces.map((piece) => this.#number(piece)).includes(true);
  }

  #number(piece: Members): boolean {
    const id = textOf(piece.id);
    const name = isMembers(piece.function) ? textOf(piece.function.name) : '';
    const index = isNumber(piece.index) ? piece.index : null;
    const found = this.#find(index, id, name);
    // A piece with a name and another id begins a call, even if its number is that of an earlier one.
    const isOther = name !== '' && id !== '' && found?.id !== '' && found?.id !== id;
    const call = found === undefined || isOther ? this.#begin(index) : found;
    call.id ||= id;
    call.name ||= name;
    if (index !== null) this.#byIndex.set(index, call);
    if (id !== '') this.#byId.set(id, call);
    this.#last = call;
    const isChanged = piece.index !== call.number;
    piece.index = call.number;
    return isChanged;
  }

  /** A piece with neither a number nor the id of a call continues the last one, unless it begins another. */
  #find(index: number | null, id: string, name: string): NumberedCall | undefined {
    const known = this.#byId.get(id);
    if (index !== null) return known?.given === index ? known : this.#byIndex.get(index);
    const last = this.#last;
    if (known !== undefined || last === null) return known;
    const isOther = (name !== '' && last.name !== '') || (id !== '' && last.id !== '');
    return isOther ? undefined : last;
  }

  #begin(index: number | null): NumberedCall {
    const number = index === null || this.#used.has(index) ? this.#next : index;
    this.#used.add(number);
    this.#next = Math.max(this.#next, number + 1);
    return { number, given: index, id: '', name: '' };
  }
}

const maxNumber = 2 ** 31;

const isNumber = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < maxNumber;
