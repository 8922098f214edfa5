// A body as JSON, from bytes that anybody may have sent.

import { isUtf8 } from 'node:buffer';
import { invalidJson } from '#lib/errors.ts';
import { isClosing, isOpening, quote, skipString } from '#lib/memory/json-text.ts';

/** Under this, the outermost object has its integers that are too long for a number, as they were written. */
export const written: unique symbol = Symbol('written');

export interface Written {
  [written]?: Record<string, string>;
}

/** Under this, a body that was parsed and checked in a thread has the JSON of its long members by their names. */
export const memberTexts: unique symbol = Symbol('memberTexts');

export interface WithMemberTexts {
  [memberTexts]?: ReadonlyMap<string, string>;
}

/** Throws a Refusal. How deep it is nested was looked at as it came (`json-gauge.ts`). */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw invalidJson('it is empty');
  if (!isUtf8(bytes)) throw invalidJson('it is not UTF-8');
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // V8's message quotes the body, which may be a prompt or a secret.
    throw invalidJson('it could not be parsed');
  }
  keepLong(value, text);
  return value;
}

/** Digits as they are. TypeScript does not know it yet. */
export const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };

const isLong = (value: unknown) => Number.isInteger(value) && !Number.isSafeInteger(value);

function keepLong(value: unknown, text: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const members = value as Record<string, unknown> & Written;
  for (const name in members)
    if (isLong(members[name])) {
      members[written] = findLong(text);
      return;
    }
}

const longInteger = /\s*:\s*(-?\d{16,})(?=[\s,}])/y;

/** One pass over the text: parsing it again with a reviver took seconds where it holds many numbers. */
function findLong(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = skipString(text, at);
      longInteger.lastIndex = end;
      const digits = depth === 1 ? longInteger.exec(text)?.[1] : undefined;
      if (digits !== undefined) found[text.slice(at + 1, end - 1)] = digits;
      at = end - 1;
    } else if (isOpening(code)) depth++;
    else if (isClosing(code)) depth--;
  }
  return found;
}
