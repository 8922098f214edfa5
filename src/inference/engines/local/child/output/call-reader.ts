// Reads one {"name": ..., "arguments": {...}} object as it is written, without waiting for its end.

import type { ToolCallDelta } from '#inference/engine.ts';

export interface CallReading {
  /** What followed the object. */
  rest: string;
  deltas: ToolCallDelta[];
  /** `broken`: this is no call; `raw` has its text. */
  state: 'open' | 'done' | 'broken';
}

export interface CallReader {
  push(text: string): CallReading;
  /** The name is known and was sent. */
  readonly begun: boolean;
  readonly raw: string;
}

const argumentKeys = ['arguments', 'parameters'];

export function createCallReader(index: number, id: string): CallReader {
  let raw = '';
  let depth = 0;
  let literal: string | null = null;
  let escaped = false;
  let expectsKey = true;
  let key: string | null = null;
  let name: string | null = null;
  let begun = false;
  /** Argument text that is not sent yet; null before the arguments begin. */
  let pending: string | null = null;
  let inArguments = false;
  let argumentsAreText = false;

  function readString(char: string): void {
    literal += char;
    if (escaped) escaped = false;
    else if (char === '\\') escaped = true;
    else if (char === '"') {
      const text = parseString(literal ?? '');
      literal = null;
      if (depth !== 1 || inArguments) return;
      if (expectsKey) key = text;
      else if (key === 'name') name = text;
    }
  }

  /** True when the object is complete. */
  function read(char: string): boolean {
    if (literal !== null) {
      readString(char);
      if (inArguments) pending += char;
      return false;
    }
    if (depth === 1 && (char === ',' || char === '}')) {
      inArguments = false;
      expectsKey = true;
    } else if (depth === 1 && char === ':') {
      expectsKey = false;
      return false;
    }
    const opensArguments =
      depth === 1 && !expectsKey && pending === null && argumentKeys.includes(key ?? '');
    if (opensArguments && char.trim() !== '') {
      inArguments = true;
      argumentsAreText = char === '"';
      pending = '';
    }
    if (inArguments) pending += char;
    if (char === '"') literal = '"';
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') {
      depth--;
      if (depth === 1) inArguments = false;
    }
    return depth === 0;
  }

  /** Text arguments are JSON inside a JSON string; they are sent once the string can be read. */
  function take(complete: boolean): ToolCallDelta[] {
    const deltas: ToolCallDelta[] = [];
    if (name === null || (pending === null && !complete)) return deltas;
    if (!begun) deltas.push({ index, id, type: 'function', function: { name, arguments: '' } });
    begun = true;
    if (argumentsAreText && !complete) return deltas;
    const text = argumentsAreText ? (parseString(pending ?? '') ?? '') : (pending ?? '{}');
    if (text !== '') deltas.push({ index, function: { arguments: text } });
    pending = '';
    return deltas;
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
        if (depth === 0 && char.trim() === '') continue;
        if (depth === 0 && char !== '{')
          return { rest: text.slice(at + 1), deltas: [], state: 'broken' };
        if (!read(char)) continue;
        const deltas = take(true);
        return { rest: text.slice(at + 1), deltas, state: begun ? 'done' : 'broken' };
      }
      return { rest: '', deltas: take(false), state: 'open' };
    },
  };
}

function parseString(literal: string): string | null {
  try {
    const parsed: unknown = JSON.parse(literal);
    return typeof parsed === 'string' ? parsed : null;
  } catch {
    return null;
  }
}
