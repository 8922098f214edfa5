// Counts the values and the nesting of a JSON body while its bytes arrive, so that a body over the bounds is
// refused after a few hundred kilobytes and is never held or parsed whole.

import { invalidJson, tooManyValues } from '#lib/errors.ts';
import { backslash, quote } from '#lib/memory/json-text.ts';

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
