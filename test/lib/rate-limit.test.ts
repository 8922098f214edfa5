// The rate limiter in memory and the one in Redis decide alike: the pace, a request that comes a little too early, and
// a unit that is given back.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import { createRateLimiter, type RateLimiter } from '#lib/limits/rate-limit.ts';
import { createSharedRateLimiter } from '#lib/limits/shared-rate-limit.ts';
import { createHandClock } from '#test/support/clock.ts';
import { redisIsMissing, startRedis, type TestRedis } from '#test/support/redis.ts';

type Clock = ReturnType<typeof createHandClock>;

function rules(create: (clock: Clock) => RateLimiter | Promise<RateLimiter>): void {
  async function start(burst: number) {
    const clock = createHandClock();
    const limiter = await create(clock);
    const rate = { intervalMs: 1000, burst };
    return {
      clock,
      take: () => limiter.take(`burst ${burst}`, rate),
      giveBack: () => limiter.giveBack(`burst ${burst}`, rate),
    };
  }

  test('a fraction of a unit is how much too early the next may be taken', async () => {
    const { clock, take } = await start(1.5);
    assert.equal(await take(), 0);
    assert.equal(await take(), 500);
    clock.turn(500);
    assert.equal(await take(), 0);
    clock.turn(500);
    assert.equal(await take(), 500, 'the time that was borrowed is owed');
    clock.turn(500);
    assert.equal(await take(), 0);
  });

  test('a unit that is given back can be taken again, and no more than was taken', async () => {
    const { take, giveBack } = await start(1);
    await giveBack();
    assert.equal(await take(), 0);
    assert.equal(await take(), 1000);
    await giveBack();
    await giveBack();
    assert.equal(await take(), 0);
    assert.equal(await take(), 1000);
  });
}

describe('rates in memory', () => rules((clock) => createRateLimiter(clock)));

describe('rates in Redis', { skip: redisIsMissing }, () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.stop());
  rules(async (clock) => createSharedRateLimiter(await redis.share(clock)));
});
