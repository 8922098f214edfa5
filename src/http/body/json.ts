// JSON bodies: counted while their bytes arrive, so that one over the bounds is refused after a few hundred kilobytes
// and never parsed, then parsed with integers that are too long for a JavaScript number kept as text.

import { isUtf8 } from 'node:buffer';
import { invalidJson, tooManyValues } from '#lib/errors.ts';
import { backslash, isClosing, isOpening, quote, skipString } from '#lib/memory/json-text.ts';

/** Key under which the outermost object has the text of its integers that are too long for a number. */
export const rawIntegers: unique symbol = Symbol('rawIntegers');

export interface WithRawIntegers {
  [rawIntegers]?: Record<string, string>;
}

/**
 * Key under which a body that was parsed in a thread has the JSON of its long members, as UTF-8 by the member's value.
 * A member that is replaced loses it.
 */
export const memberTexts: unique symbol = Symbol('memberTexts');

export interface WithMemberTexts {
  [memberTexts]?: ReadonlyMap<unknown, Uint8Array>;
}

/** Throws a Refusal. The nesting depth was checked while the bytes arrived (`JsonGauge`). */
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

/** Maximum nesting depth: deeper than any real request, and shallow enough for every recursive function here. */
export const maxDepth = 128;

const comma = 0x2c;

/** The first bytes of a string are scanned one by one: a native search costs as much as scanning this many. */
const shortString = 32;

/**
 * Counts commas and opening brackets outside of strings as values, which is an upper bound that needs no parser.
 * Text that is not JSON is counted too; the parser refuses it later.
 */
export class JsonGauge {
  readonly #maxValues: number;
  #values = 1;
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  constructor(maxValues: number) {
    this.#maxValues = maxValues;
  }

  get values(): number {
    return this.#values;
  }

  /** Takes the next bytes of the body. Throws a Refusal once a bound is exceeded. */
  add(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      at = this.#inString ? this.#skipString(bytes, at) : this.#skipStructure(bytes, at);
      if (this.#values > this.#maxValues) throw tooManyValues(this.#maxValues);
    }
  }

  /** Returns the position after the next opening quote, or the end. */
  #skipStructure(bytes: Uint8Array, from: number): number {
    let values = this.#values;
    let depth = this.#depth;
    let at = from;
    while (at < bytes.length) {
      const byte = bytes[at++];
      if (byte === quote) {
        this.#inString = true;
        break;
      }
      if (byte === comma) values++;
      // [ and { differ only in this bit, and so do ] and }.
      else if (((byte as number) | 0x20) === 0x7b) {
        values++;
        if (++depth > maxDepth) throw invalidJson(`it is nested deeper than ${maxDepth} levels`);
      } else if (((byte as number) | 0x20) === 0x7d) depth--;
    }
    this.#values = values;
    this.#depth = depth;
    return at;
  }

  /** Returns the position after the closing quote, or the end. */
  #skipString(bytes: Uint8Array, from: number): number {
    let at = from;
    let isEscaped = this.#isEscaped;
    const shortEnd = Math.min(bytes.length, from + shortString);
    while (at < shortEnd) {
      const byte = bytes[at++];
      if (isEscaped) isEscaped = false;
      else if (byte === backslash) isEscaped = true;
      else if (byte === quote) {
        this.#inString = false;
        this.#isEscaped = false;
        return at;
      }
    }
    const found = bytes.indexOf(quote, at);
    const end = found < 0 ? bytes.length : found;
    let slashes = end;
    while (slashes > at && bytes[slashes - 1] === backslash) slashes--;
    // If everything from `at` is backslashes, the first of them may be escaped itself.
    const run = end - slashes - (slashes === at && isEscaped && end > at ? 1 : 0);
    const isEndEscaped = end === at ? isEscaped : run % 2 === 1;
    this.#isEscaped = found < 0 && isEndEscaped;
    if (found < 0) return end;
    this.#inString = isEndEscaped;
    return end + 1;
  }
}
