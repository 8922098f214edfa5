// Server-sent events are read however the network splits them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readEvents } from '#lib/read-events.ts';

const bodyOf = (pieces: Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });

function cut(bytes: Uint8Array, places: number[]): Uint8Array[] {
  const sorted = [0, ...places.map((place) => place % bytes.length), bytes.length].sort(
    (one, other) => one - other,
  );
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

const read = (text: string) =>
  Array.fromAsync(readEvents(bodyOf([new TextEncoder().encode(text)])));

describe('server-sent events', () => {
  test('events are the same however the bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/[\r\n]/.test(text)),
          {
            minLength: 1,
          },
        ),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat(), { maxLength: 8 }),
        async (events, newline, places) => {
          const text = events.map((event) => `data: ${event}${newline}${newline}`).join('');
          // Only what follows a \r tells whether it is the first half of \r\n.
          const bytes = new TextEncoder().encode(`${text}${newline === '\r' ? ':end\n' : ''}`);
          const found = await Array.fromAsync(readEvents(bodyOf(cut(bytes, places))));
          assert.deepEqual(found, events);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('comments and other fields are ignored', async () => {
    assert.deepEqual(await read(': ping\n\nevent: x\nid: 1\ndata: a\n\n: ping\n\n'), ['a']);
  });

  test('several data lines form one event', async () => {
    assert.deepEqual(await read('data: a\ndata:b\n\n'), ['a\nb']);
  });

  test('an event that never ends is an error', async () => {
    await assert.rejects(read(`data: ${'x'.repeat(17_000_000)}`), /an event that is too long/);
  });

  test('many events that arrive at once are not too long', async () => {
    const found = await read(`data: ${'x'.repeat(1_000)}\n\n`.repeat(17_000));
    assert.equal(found.length, 17_000);
  });
});
