// Parses a request body as JSON, keeping integers that are too long for a JavaScript number.

import { isUtf8 } from 'node:buffer';
import { invalidJson } from '#lib/errors.ts';
import { isClosing, isOpening, quote, skipString } from '#lib/memory/json-text.ts';

/** Key under which the outermost object has the text of its integers that are too long for a number. */
export const rawIntegers: unique symbol = Symbol('rawIntegers');

export interface WithRawIntegers {
  [rawIntegers]?: Record<string, string>;
}

/** Key under which a body that was parsed in a thread has the JSON text of its long members, by name. */
export const memberTexts: unique symbol = Symbol('memberTexts');

export interface WithMemberTexts {
  [memberTexts]?: ReadonlyMap<string, string>;
}

/** Throws a Refusal. The nesting depth was checked while the bytes arrived (`json-gauge.ts`). */
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
  keepRawIntegers(value, text);
  return value;
}

/** Serialises digits unchanged. TypeScript's library does not declare it yet. */
export const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };

const isUnsafeInteger = (value: unknown) => Number.isInteger(value) && !Number.isSafeInteger(value);

function keepRawIntegers(value: unknown, text: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const members = value as Record<string, unknown> & WithRawIntegers;
  for (const name in members)
    if (isUnsafeInteger(members[name])) {
      members[rawIntegers] = findRawIntegers(text);
      return;
    }
}

const longInteger = /\s*:\s*(-?\d{16,})(?=[\s,}])/y;

/** Scans the text once. Parsing it again with a reviver took seconds for a body with many numbers. */
function findRawIntegers(text: string): Record<string, string> {
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
