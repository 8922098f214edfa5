// A body as JSON, from bytes that anybody may have sent.

import { isUtf8 } from 'node:buffer';
import { invalidJson } from '#lib/errors.ts';
import { isClosing, isOpening, quote, skipString } from '#lib/memory/json-text.ts';

/** Deeper than any real request, and shallow enough for every recursive function downstream. */
const maxDepth = 128;

/** Under this, the outermost object has its integers that are too long for a number, as they were written. */
export const written: unique symbol = Symbol('written');

export interface Written {
  [written]?: Record<string, string>;
}

/** Throws a Refusal. */
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
  if (isDeeperThan(value, maxDepth))
    throw invalidJson(`it is nested deeper than ${maxDepth} levels`);
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

/** Goes no deeper itself than the limit, so that hostile nesting costs no stack. */
function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const member of value) if (isDeeperThan(member, levels - 1)) return true;
    return false;
  }
  for (const name in value) {
    if (isDeeperThan((value as Record<string, unknown>)[name], levels - 1)) return true;
  }
  return false;
}
