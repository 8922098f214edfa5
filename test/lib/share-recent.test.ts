// One reading for many readers.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { shareRecent } from '#lib/async/share-recent.ts';

const longMs = 600_000;

describe('a shared reading', () => {
  test('runs once for all who ask meanwhile and shortly after', async () => {
    let reads = 0;
    const first = Promise.withResolvers<void>();
    const read = shareRecent(longMs, async () => {
      await first.promise;
      return ++reads;
    });
    const waiting = [read(), read()];
    first.resolve();
    assert.deepEqual([...(await Promise.all(waiting)), await read()], [1, 1, 1]);
  });

  test('is made again when the last one is too old', async () => {
    let reads = 0;
    const read = shareRecent(0, async () => ++reads);
    assert.deepEqual([await read(), await read()], [1, 2]);
  });

  test('that fails does so for all, and is not made again at once', async () => {
    let reads = 0;
    const read = shareRecent(longMs, async () => {
      reads++;
      throw new Error('It does not answer.');
    });
    await assert.rejects(read());
    await assert.rejects(read());
    assert.equal(reads, 1);
  });
});
