// A computer's clock may be set back, say by an hour. Rate limits don't wait for that hour, and cached values are not
// kept for it.

import assert from 'node:assert';
import { test } from 'node:test';
import { createRateLimiter } from '#lib/limits/rate-limit.ts';
import { createLookupCache } from '#lib/memory/caches.ts';
import { createHandClock } from '#test/support/clock.ts';

const hourMs = 3_600_000;

test('a rate limit waits no longer than its own interval', () => {
  const clock = createHandClock();
  const { take } = createRateLimiter(clock);
  const rate = { intervalMs: 1000, burst: 2 };
  assert.deepEqual([take('a', rate), take('a', rate), take('a', rate)], [0, 0, 1000]);
  clock.turn(-hourMs);
  assert.equal(take('a', rate), 1000);
  clock.turn(999);
  assert.notEqual(take('a', rate), 0);
  clock.turn(1001);
  assert.equal(take('a', rate), 0);
});

test('what was cached for a second is looked up again', () => {
  const clock = createHandClock();
  const cache = createLookupCache<string>(clock, { maxEntries: 2, maxAgeMs: 1000 });
  cache.set('key', 'valid', cache.ticket());
  clock.turn(999);
  assert.equal(cache.get('key'), 'valid');
  clock.turn(-hourMs);
  assert.equal(cache.get('key'), undefined);
});
