// Splits a file into lines as its blocks arrive, holding one line at a time.

import { setImmediate as turn } from 'node:timers/promises';

export interface InputLine {
  /** Counted from 1, including blank lines, from where the reading began. */
  readonly number: number;
  readonly offset: number;
  /** Offset of the next line. */
  readonly end: number;
  readonly bytes: Buffer;
}

export class LineTooLong extends Error {
  readonly number: number;

  constructor(number: number) {
    super('line too long');
    this.number = number;
  }
}

const newline = 10;

/** Yields all lines that are not blank. Throws LineTooLong. `from` is the offset at which the content begins. */
export async function* readLines(
  content: AsyncIterable<Uint8Array>,
  from: number,
  maxBytes: number,
): AsyncGenerator<InputLine> {
  let parts: Uint8Array[] = [];
  let length = 0;
  let offset = from;
  let number = 1;

  function take(isLast: boolean): InputLine {
    const line = { number, offset, end: offset + length + (isLast ? 0 : 1), bytes: join(parts) };
    number++;
    offset = line.end;
    parts = [];
    length = 0;
    return line;
  }

  for await (const block of content) {
    // SQLite reads without waiting: a file of blank lines would block the event loop.
    await turn();
    for (let at = 0; at < block.length; ) {
      const next = length === 0 ? findAfterBlank(block, at) : -1;
      if (next !== -1) {
        number++;
        offset += next - at;
        at = next;
        continue;
      }
      const found = block.indexOf(newline, at);
      const end = found === -1 ? block.length : found;
      parts.push(block.subarray(at, end));
      length += end - at;
      if (length > maxBytes) throw new LineTooLong(number);
      at = end + 1;
      if (found === -1) continue;
      const line = take(false);
      if (!isBlank(line.bytes)) yield line;
    }
  }
  const last = take(true);
  if (!isBlank(last.bytes)) yield last;
}

function join(parts: readonly Uint8Array[]): Buffer {
  const [only] = parts;
  if (parts.length !== 1 || only === undefined) return Buffer.concat(parts);
  return Buffer.from(only.buffer, only.byteOffset, only.length);
}

/**
 * The index after a blank line, without creating anything for it; -1 if the line is not blank or
 * ends in a later block.
 */
function findAfterBlank(block: Uint8Array, at: number): number {
  let end = at;
  while (isSpace(block[end])) end++;
  return block[end] === newline ? end + 1 : -1;
}

/** Blank is what JSON calls white space. */
const isBlank = (bytes: Uint8Array) => bytes.every(isSpace);

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0d || byte === 0x09;
