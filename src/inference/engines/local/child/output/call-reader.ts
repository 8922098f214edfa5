// Reads one {"name": ..., "arguments": {...}} object while it is written, without waiting for its end.

import type { ToolCallDelta } from '#inference/wire/response.ts';

export interface CallReading {
  /** The text after the object. */
  rest: string;
  deltas: ToolCallDelta[];
  /** `broken`: the text is not a call; the reader's `raw` has it. */
  state: 'open' | 'done' | 'broken';
}

const argumentKeys: readonly (string | null)[] = ['arguments', 'parameters'];

export class CallReader {
  readonly #index: number;
  readonly #id: string;
  /** True once the name is known and was sent. */
  begun = false;
  raw = '';
  /** Open braces and brackets. */
  #depth = 0;
  /** The JSON string being read, with its opening quote; null outside of strings. */
  #literal: string | null = null;
  #isEscaped = false;
  /** True where the next string of the outer object is a key. */
  #expectsKey = true;
  #key: string | null = null;
  #name: string | null = null;
  /** Text of the arguments that was not sent yet; null before the arguments begin. */
  #pending: string | null = null;
  #inArguments = false;
  /** The arguments are a JSON string that holds JSON. */
  #areArgumentsText = false;

  constructor(index: number, id: string) {
    this.#index = index;
    this.#id = id;
  }

  push(text: string): CallReading {
    for (let at = 0; at < text.length; at++) {
      const char = text[at] ?? '';
      this.raw += char;
      if (this.#depth === 0 && isSpace(char)) continue;
      if (this.#depth === 0 && char !== '{')
        return { rest: text.slice(at + 1), deltas: [], state: 'broken' };
      this.#readChar(char);
      if (this.#depth > 0) continue;
      const deltas = this.#takeDeltas(true);
      return { rest: text.slice(at + 1), deltas, state: this.begun ? 'done' : 'broken' };
    }
    return { rest: '', deltas: this.#takeDeltas(false), state: 'open' };
  }

  #takeDeltas(isComplete: boolean): ToolCallDelta[] {
    const [index, id, name] = [this.#index, this.#id, this.#name];
    if (name === null || (this.#pending === null && !isComplete)) return [];
    const opening: ToolCallDelta[] = this.begun
      ? []
      : [{ index, id, type: 'function', function: { name, arguments: '' } }];
    this.begun = true;
    const text = this.#takeArguments(isComplete);
    return text === '' ? opening : [...opening, { index, function: { arguments: text } }];
  }

  #readChar(char: string): void {
    if (this.#literal !== null) {
      this.#readStringChar(char);
      if (this.#inArguments) this.#pending += char;
      return;
    }
    if (this.#depth === 1 && char === ':') {
      this.#expectsKey = false;
      return;
    }
    if (this.#depth === 1) this.#readBetweenMembers(char);
    if (this.#inArguments) this.#pending += char;
    if (char === '"') this.#literal = '"';
    else if (char === '{' || char === '[') this.#depth++;
    else if (char === '}' || char === ']') {
      this.#depth--;
      if (this.#depth === 1) this.#inArguments = false;
    }
  }

  /** Reads a character of the outer object that is not part of a string. */
  #readBetweenMembers(char: string): void {
    if (char === ',' || char === '}') {
      this.#inArguments = false;
      this.#expectsKey = true;
    } else if (
      !this.#expectsKey &&
      this.#pending === null &&
      argumentKeys.includes(this.#key) &&
      !isSpace(char)
    ) {
      this.#inArguments = true;
      this.#areArgumentsText = char === '"';
      this.#pending = '';
    }
  }

  #readStringChar(char: string): void {
    this.#literal += char;
    if (this.#isEscaped) this.#isEscaped = false;
    else if (char === '\\') this.#isEscaped = true;
    else if (char === '"') {
      const text = parseString(this.#literal ?? '');
      this.#literal = null;
      if (this.#depth !== 1 || this.#inArguments) return;
      if (this.#expectsKey) this.#key = text;
      else if (this.#key === 'name') this.#name = text;
    }
  }

  /** Arguments written as a JSON string are sent when the string has ended. Arguments left out are `{}`. */
  #takeArguments(isComplete: boolean): string {
    if (this.#areArgumentsText && !isComplete) return '';
    const pending = this.#pending;
    this.#pending = '';
    return this.#areArgumentsText ? (parseString(pending ?? '') ?? '') : (pending ?? '{}');
  }
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
