// Lines of a batch's file: blank ones, ends of blocks, and files that would block the event loop.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { readLines } from '#inference/apis/batches/line-reader.ts';

async function* toBlocks(text: string, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
}

async function read(text: string, size: number) {
  const lines: unknown[] = [];
  for await (const { number, offset, end, bytes } of readLines(toBlocks(text, size), 5, 100))
    lines.push([number, offset, end, `${bytes}`]);
  return lines;
}

describe('lines of a file', () => {
  test('are the same wherever a block ends', async () => {
    const text = '\n a\n \t\r\n\n\nbb \r\n  \nc';
    const expected = [
      [2, 6, 9, ' a'],
      [6, 15, 20, 'bb \r'],
      [8, 23, 24, 'c'],
    ];
    for (let size = 1; size <= text.length; size++)
      assert.deepEqual(await read(text, size), expected, `blocks of ${size}`);
  });

  test('leave the event loop its turns, also if all of them are blank', async () => {
    let turns = 0;
    const count = () => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    assert.deepEqual(await read(' \n'.repeat(10_000), 200), []);
    clearImmediate(next);
    assert(turns >= 50, `${turns} turns for 100 blocks`);
  });
});
