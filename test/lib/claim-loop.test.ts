// The loop that claims rows and works on them: how many at once, when it looks again, and how it stops.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { ClaimLoop, type ClaimRules } from '#lib/async/claim-loop.ts';
import { until } from '#test/support/until.ts';

/** Rows are names. Each job runs until the test ends it. */
function createLoop(waiting: string[], rules: Partial<ClaimRules<string, string>> = {}) {
  const running = new Map<string, () => void>();
  const failures: unknown[] = [];
  const loop = new ClaimLoop<string, string>({
    maxJobs: 2,
    lookMs: 3_600_000,
    claim: async () => waiting.shift(),
    idOf: (row) => row,
    open: (row) => `job ${row}`,
    run: (row) => new Promise<void>((done) => running.set(row, done)),
    lookFailed: (error) => failures.push(error),
    ...rules,
  });
  return { loop, running, failures };
}

describe('a loop that claims rows', () => {
  test('runs as many jobs as it may, and claims another when one ends', async () => {
    const { loop, running } = createLoop(['a', 'b', 'c']);
    loop.start();
    loop.wake();
    await until('two jobs run', () => running.size === 2);
    assert.deepEqual(
      [...loop.jobs],
      [
        ['a', 'job a'],
        ['b', 'job b'],
      ],
    );
    running.get('a')?.();
    await loop.ended('a');
    await until('the third job runs', () => running.has('c'));
    assert.deepEqual([...loop.jobs.keys()], ['b', 'c']);
    for (const end of running.values()) end();
    await loop.stop();
    await loop.finished();
    assert.equal(loop.jobs.size, 0);
  });

  test('claims nothing before its start and after its stop', async () => {
    const waiting = ['a'];
    const { loop } = createLoop(waiting);
    loop.wake();
    loop.start();
    await loop.stop();
    loop.wake();
    await loop.finished();
    assert.deepEqual(waiting, ['a']);
  });

  test('stops while it looks: a row that is claimed then still runs, and no other', async () => {
    const waiting = ['a', 'b'];
    const begun = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const { loop, running } = createLoop(waiting, {
      async claim() {
        begun.resolve();
        await answered.promise;
        return waiting.shift();
      },
    });
    loop.start();
    loop.wake();
    await begun.promise;
    const stopped = loop.stop();
    answered.resolve();
    await stopped;
    assert.deepEqual([[...running.keys()], waiting], [['a'], ['b']]);
    running.get('a')?.();
    await loop.finished();
  });

  test('looks again after it could not', async () => {
    let attempts = 0;
    const { loop, running, failures } = createLoop(['a'], {
      async prepare() {
        attempts++;
        if (attempts === 1) throw new Error('no database');
      },
    });
    loop.start();
    loop.wake();
    await until('the look has failed', () => failures.length === 1);
    await until('the job runs', () => {
      loop.wake();
      return running.has('a');
    });
    running.get('a')?.();
    await loop.stop();
    await loop.finished();
  });

  test('a job beats until it ends', async ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] });
    let beats = 0;
    const beat = { everyMs: 1_000, run: async () => ++beats };
    const { loop, running } = createLoop(['a'], { beat });
    loop.start();
    loop.wake();
    await until('the job runs', () => running.has('a'));
    mock.timers.tick(2_000);
    assert.equal(beats, 2);
    running.get('a')?.();
    await loop.ended('a');
    mock.timers.tick(2_000);
    assert.equal(beats, 2);
    await loop.stop();
  });
});
