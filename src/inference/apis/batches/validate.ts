// Checks all lines of a batch before the first one runs. Ids are compared as hashes, so that the memory needed hardly
// grows with the file.

import { setImmediate as turn } from 'node:timers/promises';
import type { ListedEndpoint } from '#inference/apis/apis.ts';
import { IdSet } from './id-set.ts';
import { type Prepare, parseLine, toFault } from './line.ts';
import { emptyInput, invalidMember, lineTooLong, tooManyLines } from './line-faults.ts';
import { type InputLine, LineTooLong, readLines } from './line-reader.ts';
import type { BatchLineError } from './schema.ts';

export interface LineBounds {
  readonly maxLines: number;
  readonly maxLineBytes: number;
  readonly maxValues: number;
}

export interface Validation {
  readonly total: number;
  /** The first errors, in the order of their lines. */
  readonly errors: BatchLineError[];
}

export interface ValidateParts {
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
