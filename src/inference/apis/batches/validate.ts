// Checks all lines of a batch before the first one runs. Ids are compared as hashes, so that the memory needed hardly
// grows with the file.

import { hash, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { ListedEndpoint } from '#inference/apis/apis.ts';
import { type Prepare, parseLine, toFault } from './line.ts';
import { emptyInput, invalidMember, lineTooLong, tooManyLines } from './line-faults.ts';
import { type InputLine, LineTooLong, readLines } from './line-reader.ts';
import type { BatchLineError } from './schema.ts';

export interface LineBounds {
  readonly maxLines: number;
  readonly maxLineBytes: number;
  readonly maxValues: number;
}

interface Validation {
  readonly total: number;
  /** The first errors, in the order of their lines. */
  readonly errors: BatchLineError[];
}

interface ValidateParts {
  readonly prepare: Prepare;
  readonly bounds: LineBounds;
}

const maxErrors = 100;
/** The event loop gets its turn this often. */
const sliceMs = 5;

/** Throws the signal's reason when it aborts. */
export async function validateLines(
  { prepare, bounds }: ValidateParts,
  content: AsyncIterable<Uint8Array>,
  { endpoint, accountId }: { endpoint: ListedEndpoint; accountId: string },
  signal: AbortSignal,
): Promise<Validation> {
  const errors: BatchLineError[] = [];
  const ids = new IdSet();
  let total = 0;
  let sliceEnd = performance.now() + sliceMs;
  const check = async (line: InputLine) => {
    const request = parseLine(line.bytes, endpoint.url, bounds.maxValues);
    if (!('custom_id' in request)) return request;
    if (!ids.add(request.custom_id)) {
      return invalidMember(
        'duplicate_custom_id',
        'custom_id',
        'An earlier line has this custom_id.',
      );
    }
    const prepared = await prepare(endpoint, request.body, { id: '', accountId });
    return 'response' in prepared && prepared.response.status !== 200
      ? toFault(prepared.response)
      : null;
  };
  try {
    for await (const line of readLines(content, 0, bounds.maxLineBytes)) {
      const fault = ++total > bounds.maxLines ? tooManyLines(bounds.maxLines) : await check(line);
      if (fault !== null) errors.push({ ...fault, line: line.number });
      if (errors.length >= maxErrors || total > bounds.maxLines) break;
      if (performance.now() < sliceEnd) continue;
      await turn();
      signal.throwIfAborted();
      sliceEnd = performance.now() + sliceMs;
    }
  } catch (error) {
    if (!(error instanceof LineTooLong)) throw error;
    errors.push({ ...lineTooLong(bounds.maxLineBytes), line: error.number });
  }
  if (total === 0 && errors.length === 0) errors.push({ ...emptyInput, line: null });
  return { total, errors };
}

const startSize = 1_024;

/**
 * The ids of a batch, to find one that occurs twice. It keeps 64 bits of a keyed hash of each: a
 * million ids take 32 MiB. Two different ids of a million share theirs with a probability of 3 in
 * 100 million.
 */
class IdSet {
  readonly #key = randomUUID();
  /** Two words for each place; both are 0 if it is free. */
  #words = new Uint32Array(startSize * 2);
  #count = 0;

  /** Returns false if the id was added before. */
  add(id: string): boolean {
    const digest = hash('sha256', this.#key + id, 'buffer');
    // The first word of a used place is never 0.
    if (!this.#insert(digest.readUInt32LE(0) || 1, digest.readUInt32LE(4))) return false;
    this.#count++;
    if (this.#count * 4 > this.#words.length) this.#grow();
    return true;
  }

  #insert(high: number, low: number): boolean {
    const words = this.#words;
    const mask = words.length / 2 - 1;
    for (let place = low & mask; ; place = (place + 1) & mask) {
      const at = place * 2;
      if (words[at] === 0) {
        words[at] = high;
        words[at + 1] = low;
        return true;
      }
      if (words[at] === high && words[at + 1] === low) return false;
    }
  }

  #grow(): void {
    const old = this.#words;
    this.#words = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += 2) {
      const high = old[at] as number;
      if (high !== 0) this.#insert(high, old[at + 1] as number);
    }
  }
}
