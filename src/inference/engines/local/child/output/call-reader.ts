// Reads one {"name": ..., "arguments": {...}} object while it is written, without waiting for its end.

import type { ToolCallDelta } from '#inference/engine.ts';

export interface CallReading {
  /** The text after the object. */
  rest: string;
  deltas: ToolCallDelta[];
  /** `broken`: the text is not a call; the reader's `raw` has it. */
  state: 'open' | 'done' | 'broken';
}

export interface CallReader {
  push(text: string): CallReading;
  /** True once the name is known and was sent. */
  readonly begun: boolean;
  readonly raw: string;
}

const argumentKeys: readonly (string | null)[] = ['arguments', 'parameters'];

interface ReaderState {
  /** Open braces and brackets. */
  depth: number;
  /** The JSON string being read, with its opening quote; null outside of strings. */
  literal: string | null;
  isEscaped: boolean;
  /** True where the next string of the outer object is a key. */
  expectsKey: boolean;
  key: string | null;
  name: string | null;
  /** Text of the arguments that was not sent yet; null before the arguments begin. */
  pending: string | null;
  inArguments: boolean;
  /** The arguments are a JSON string that holds JSON. */
  areArgumentsText: boolean;
}

export function createCallReader(index: number, id: string): CallReader {
  const state: ReaderState = {
    depth: 0,
    literal: null,
    isEscaped: false,
    expectsKey: true,
    key: null,
    name: null,
    pending: null,
    inArguments: false,
    areArgumentsText: false,
  };
  let raw = '';
  let begun = false;

  function takeDeltas(isComplete: boolean): ToolCallDelta[] {
    const { name } = state;
    if (name === null || (state.pending === null && !isComplete)) return [];
    const opening: ToolCallDelta[] = begun
      ? []
      : [{ index, id, type: 'function', function: { name, arguments: '' } }];
    begun = true;
    const text = takeArguments(state, isComplete);
    return text === '' ? opening : [...opening, { index, function: { arguments: text } }];
  }

  return {
    get begun() {
      return begun;
    },
    get raw() {
      return raw;
    },
    push(text) {
      for (let at = 0; at < text.length; at++) {
        const char = text[at] ?? '';
        raw += char;
        if (state.depth === 0 && isSpace(char)) continue;
        if (state.depth === 0 && char !== '{')
          return { rest: text.slice(at + 1), deltas: [], state: 'broken' };
        readChar(state, char);
        if (state.depth > 0) continue;
        const deltas = takeDeltas(true);
        return { rest: text.slice(at + 1), deltas, state: begun ? 'done' : 'broken' };
      }
      return { rest: '', deltas: takeDeltas(false), state: 'open' };
    },
  };
}

function readChar(state: ReaderState, char: string): void {
  if (state.literal !== null) {
    readStringChar(state, char);
    if (state.inArguments) state.pending += char;
    return;
  }
  if (state.depth === 1 && char === ':') {
    state.expectsKey = false;
    return;
  }
  if (state.depth === 1) readBetweenMembers(state, char);
  if (state.inArguments) state.pending += char;
  if (char === '"') state.literal = '"';
  else if (char === '{' || char === '[') state.depth++;
  else if (char === '}' || char === ']') {
    state.depth--;
    if (state.depth === 1) state.inArguments = false;
  }
}

/** Reads a character of the outer object that is not part of a string. */
function readBetweenMembers(state: ReaderState, char: string): void {
  if (char === ',' || char === '}') {
    state.inArguments = false;
    state.expectsKey = true;
  } else if (opensArguments(state) && !isSpace(char)) {
    state.inArguments = true;
    state.areArgumentsText = char === '"';
    state.pending = '';
  }
}

function opensArguments({ expectsKey, pending, key }: ReaderState): boolean {
  return !expectsKey && pending === null && argumentKeys.includes(key);
}

function readStringChar(state: ReaderState, char: string): void {
  state.literal += char;
  if (state.isEscaped) state.isEscaped = false;
  else if (char === '\\') state.isEscaped = true;
  else if (char === '"') {
    const text = parseString(state.literal ?? '');
    state.literal = null;
    if (state.depth !== 1 || state.inArguments) return;
    if (state.expectsKey) state.key = text;
    else if (state.key === 'name') state.name = text;
  }
}

/** Arguments written as a JSON string are sent when the string has ended. Arguments left out are `{}`. */
function takeArguments(state: ReaderState, isComplete: boolean): string {
  if (state.areArgumentsText && !isComplete) return '';
  const { pending } = state;
  state.pending = '';
  return state.areArgumentsText ? (parseString(pending ?? '') ?? '') : (pending ?? '{}');
}

function isSpace(char: string): boolean {
  return char.trim() === '';
}

function parseString(literal: string): string | null {
  try {
    const parsed: unknown = JSON.parse(literal);
    return typeof parsed === 'string' ? parsed : null;
  } catch {
    return null;
  }
}
