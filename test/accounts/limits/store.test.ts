// One suite over both stores: what a limit means does not depend on where it is counted.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { createMemoryStore } from '#accounts/limits/memory-store.ts';
import { createRedisStore } from '#accounts/limits/redis-store.ts';
import type { LimitScope, LimitStore, ReserveResult } from '#accounts/limits/store.ts';
import { createHandClock, type HandClock } from '#test/support/clock.ts';
import { month, newScope } from '#test/support/limits/scopes.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { redisIsMissing, startRedis, type TestRedis } from '#test/support/redis.ts';

let redis: TestRedis | undefined;
before(async () => {
  if (!redisIsMissing) redis = await startRedis();
});
after(() => redis?.stop());

const stores: Record<string, (clock: HandClock) => Promise<LimitStore>> = {
  memory: async (clock) => createMemoryStore(clock),
  redis: async (clock) => {
    assert(redis !== undefined);
    return createRedisStore(await redis.share(clock));
  },
};

const oneAtOnce = { concurrentRequests: 1, tokensPerMinute: 70 };
const free = { tokens: 0, costNano: 0 };
const limitOf = ({ refused }: ReserveResult) => refused?.limit ?? null;

for (const [name, create] of Object.entries(stores)) {
  describe(`limits in ${name}`, { skip: name === 'redis' && redisIsMissing }, () => {
    let clock: HandClock;
    let store: LimitStore;
    before(async () => {
      clock = createHandClock();
      store = await create(clock);
    });
    after(() => store.close());
    const ask = async (scopes: LimitScope[], tokens = 0, costNano = 0, at = month) =>
      store.reserve(scopes, { tokens, costNano }, at);

    test('a minute’s requests may come at once, then one per share of the minute', async () => {
      const scope = newScope({ requestsPerMinute: 7 });
      for (let count = 0; count < 7; count++) assert.equal(limitOf(await ask([scope])), null);
      assert.equal(limitOf(await ask([scope])), 'requests');
      // A seventh of a minute is 8,571.43 ms.
      clock.turn(8571);
      assert.equal(limitOf(await ask([scope])), 'requests');
      clock.turn(1);
      assert.equal(limitOf(await ask([scope])), null);
      assert.equal(limitOf(await ask([scope])), 'requests');
      clock.turn(60_000);
      for (let count = 0; count < 7; count++) assert.equal(limitOf(await ask([scope])), null);
    });

    test('a reservation that another server takes over is counted once, and never refused', async () => {
      const other = await create(clock);
      const limits = { requestsPerMinute: 1, concurrentRequests: 1, tokensPerMinute: 70 };
      const scope = newScope({ ...limits, monthlyBudgetNano: 100 });
      const first = await ask([scope], 50, 100);
      assert.equal(limitOf(first), null);
      const ticket = { id: first.id, tokens: 50, costNano: 100 };
      const second = await other.takeOver([scope], ticket, month);
      const stateOf = async () => (await other.check([scope], free, month)).states[0];
      const running = await stateOf();
      assert.deepEqual([running?.open, running?.heldNano], [1, 100]);
      assert((running?.requestDebt ?? 0) <= 60_000, 'one request at most');
      first.leave();
      second.settle({ tokens: 60, costNano: 90 });
      assert.deepEqual(await stateOf(), {
        requestDebt: running?.requestDebt,
        tokenDebt: 60 * 60_000,
        open: 0,
        spentNano: 90,
        heldNano: 0,
      });
      await other.close();
    });

    test('a clock that is set back neither frees nor takes anything', async () => {
      const scope = newScope({ requestsPerMinute: 2, tokensPerMinute: 60 });
      for (let count = 0; count < 2; count++) assert.equal(limitOf(await ask([scope], 30)), null);
      clock.turn(-3_600_000);
      assert.equal(limitOf(await ask([scope], 30)), 'requests');
      clock.turn(29_999);
      assert.equal(limitOf(await ask([scope], 30)), 'requests');
      clock.turn(1);
      assert.equal(limitOf(await ask([scope], 30)), null);
    });

    test('a limit lowered below the running requests admits none until enough have ended', async () => {
      const scope = newScope({ concurrentRequests: 3, tokensPerMinute: 100 });
      const running = await Promise.all([ask([scope], 30), ask([scope], 30), ask([scope], 30)]);
      const lower = { ...scope, limits: { ...scope.limits, ...oneAtOnce } };
      const refused = await ask([lower], 5);
      assert.equal(limitOf(refused), 'tokens');
      for (const one of running.slice(0, 2)) one.settle(free);
      assert.equal(limitOf(await ask([lower], 5)), 'concurrent');
      running[2]?.settle(free);
      assert.equal(limitOf(await ask([lower], 5)), null);
    });

    test('a request that the account refuses takes nothing from the key', async () => {
      const key = newScope({ requestsPerMinute: 2, tokensPerMinute: 100, concurrentRequests: 2 });
      const account = newScope({ requestsPerMinute: 1 }, { kind: 'account' });
      assert.equal((await ask([key, account], 10)).refused, null);
      const refused = await ask([key, account], 10);
      assert.deepEqual(refused.refused, { scope: 1, limit: 'requests' });
      assert.deepEqual(
        refused.states.map(({ requestDebt, tokenDebt, open }) => [requestDebt, tokenDebt, open]),
        [
          [60_000, 600_000, 1],
          [60_000, 0, 1],
        ],
      );
    });

    test('unused tokens are given back, and excess ones are taken', async () => {
      const scope = newScope({ tokensPerMinute: 1000 });
      const first = await ask([scope], 900);
      assert.equal(limitOf(await ask([scope], 200)), 'tokens');
      first.settle({ tokens: 100, costNano: 0 });
      const second = await ask([scope], 900);
      assert.equal(second.refused, null);
      second.settle({ tokens: 1200, costNano: 0 });
      const third = await ask([scope], 1);
      assert.equal(limitOf(third), 'tokens');
      assert.equal(third.states[0]?.tokenDebt, 1300 * 60_000);
      // 301 tokens over, at 1,000 a minute.
      clock.turn(18_059);
      assert.equal(limitOf(await ask([scope], 1)), 'tokens');
      clock.turn(1);
      assert.equal(limitOf(await ask([scope], 1)), null);
    });

    test('a running request takes one of the concurrent ones until it is settled', async () => {
      const scope = newScope({ concurrentRequests: 2 });
      const first = await ask([scope]);
      await ask([scope]);
      assert.equal(limitOf(await ask([scope])), 'concurrent');
      first.settle(free);
      assert.equal(limitOf(await ask([scope])), null);
      assert.equal(limitOf(await ask([scope])), 'concurrent');
    });

    test('a budget holds what running requests may cost, and keeps what they did cost', async () => {
      const scope = newScope({ monthlyBudgetNano: 1000 });
      const first = await ask([scope], 0, 600);
      assert.equal(limitOf(await ask([scope], 0, 401)), 'budget');
      const second = await ask([scope], 0, 400);
      assert.equal(second.refused, null);
      first.settle({ tokens: 0, costNano: 100 });
      second.settle({ tokens: 0, costNano: 250 });
      assert.equal(limitOf(await ask([scope], 0, 651)), 'budget');
      assert.equal(limitOf(await ask([scope], 0, 650)), null);
    });

    test('a budget counts at least what the database has, and resets with the month', async () => {
      const budget = { monthlyBudgetNano: 9_000_000_000_000_000 };
      const scope = newScope(budget, { spentNano: 8_999_999_999_999_998 });
      const { id } = scope;
      (await ask([scope], 0, 1)).settle({ tokens: 0, costNano: 1 });
      assert.equal(limitOf(await ask([scope], 0, 2)), 'budget');
      // An older look at the database takes nothing back.
      assert.equal(limitOf(await ask([newScope(budget, { id })], 0, 2)), 'budget');
      const late = await ask([newScope(budget, { id })], 0, 1);
      assert.equal(late.refused, null);
      const next = await ask([newScope(budget, { id })], 0, 5, '2026-02');
      assert.equal(next.refused, null);
      late.settle({ tokens: 0, costNano: 1 });
      next.settle({ tokens: 0, costNano: 5 });
      // A request that began in the old month does not add its cost to the new one.
      await ask([newScope(budget, { id, spentNano: 8_999_999_999_999_999 })], 0, 0);
      const { states } = await ask([newScope(budget, { id })], 0, 0, '2026-02');
      assert.deepEqual([states[0]?.spentNano, states[0]?.heldNano], [5, 0]);
    });

    test('costs on other servers count while they are reported, and are not stored', async () => {
      const scope = newScope({ monthlyBudgetNano: 10 }, { spentNano: 3 });
      const more = { ...scope, otherServersNano: 4 };
      const refused = await ask([more], 0, 4);
      assert.equal(limitOf(refused), 'budget');
      assert.equal(refused.states[0]?.spentNano, 7);
      assert.equal(limitOf(await ask([more], 0, 3)), null);
      // They have ended, and are in the sum.
      const { refused: none, states } = await ask([{ ...scope, spentNano: 7 }], 0, 0);
      assert.deepEqual([none, states[0]?.spentNano, states[0]?.heldNano], [null, 7, 3]);
    });

    test('of 200 concurrent requests, exactly as many are admitted as the limit allows', async () => {
      const cases = [
        { limit: { requestsPerMinute: 37 }, granted: 37 },
        { limit: { tokensPerMinute: 999 }, granted: 99 },
        { limit: { concurrentRequests: 41 }, granted: 41 },
        { limit: { monthlyBudgetNano: 535 }, granted: 53 },
      ];
      for (const { limit, granted } of cases) {
        const scopes = [newScope({}), newScope(limit, { kind: 'account' })];
        const outcomes = await Promise.all(Array.from({ length: 200 }, () => ask(scopes, 10, 10)));
        const count = outcomes.filter(({ refused }) => refused === null).length;
        assert.equal(count, granted, JSON.stringify(limit));
      }
    });

    test('under any sequence of requests the store counts like the reference model', async () => {
      await fc.assert(
        fc.asyncProperty(
          limitsAtRandom,
          fc.array(stepAtRandom, { maxLength: 40 }),
          (limits, steps) => compare(store, clock, newScope(limits), steps),
        ),
        { seed: propertySeed, numRuns: propertyRuns(name === 'redis' ? 60 : 300) },
      );
    });
  });
}

const limit = (max: number) => fc.option(fc.integer({ min: 1, max }), { nil: null });
const limitsAtRandom = fc.record({
  requestsPerMinute: limit(20),
  tokensPerMinute: limit(500),
  concurrentRequests: limit(4),
  monthlyBudgetNano: limit(2000),
});
const amount = { tokens: fc.nat(200), costNano: fc.nat(200) };
const stepAtRandom = fc.oneof(
  fc.record({ kind: fc.constant('turn' as const), ms: fc.nat(20_000) }),
  fc.record({ kind: fc.constant('ask' as const), ...amount }),
  fc.record({ kind: fc.constant('settle' as const), which: fc.nat(10), ...amount }),
);
type Step = typeof stepAtRandom extends fc.Arbitrary<infer One> ? One : never;

/** Remembers everything that ever happened, and sums it up anew for each question. */
async function compare(store: LimitStore, clock: HandClock, scope: LimitScope, steps: Step[]) {
  const events: { requests: number; tokens: number; at: number }[] = [];
  const open: { outcome: ReserveResult; tokens: number; costNano: number }[] = [];
  let spent = 0;
  const { limits } = scope;

  /** A queue's backlog: the worst of all pasts, each without the time that has paid for it. */
  function debt(of: 'requests' | 'tokens', perMinute: number | null): number {
    if (perMinute === null) return 0;
    let [worst, sum] = [0, 0];
    for (const event of events.toReversed()) {
      sum += event[of] * 60_000;
      worst = Math.max(worst, sum - (clock.now() - event.at) * perMinute);
    }
    return worst;
  }

  function expected(tokens: number, costNano: number): string | null {
    const held = open.reduce((sum, one) => sum + one.costNano, 0);
    const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetNano } = limits;
    const over = (most: number | null, sum: number) => most !== null && sum > most;
    if (over(monthlyBudgetNano, spent + held + costNano)) return 'budget';
    if (over(requestsPerMinute, debt('requests', requestsPerMinute) / 60_000 + 1))
      return 'requests';
    if (over(tokensPerMinute, debt('tokens', tokensPerMinute) / 60_000 + tokens)) return 'tokens';
    return over(concurrentRequests, open.length + 1) ? 'concurrent' : null;
  }

  for (const step of steps) {
    if (step.kind === 'turn') clock.turn(step.ms);
    else if (step.kind === 'ask') {
      const { tokens, costNano } = step;
      const want = expected(tokens, costNano);
      const outcome = await store.reserve([scope], { tokens, costNano }, month);
      assert.equal(limitOf(outcome), want);
      if (want !== null) continue;
      open.push({ outcome, tokens, costNano });
      events.push({ requests: 1, tokens, at: clock.now() });
    } else {
      const [one] = open.splice(step.which, 1);
      if (one === undefined) continue;
      one.outcome.settle(step);
      spent += step.costNano;
      events.push({ requests: 0, tokens: step.tokens - one.tokens, at: clock.now() });
    }
  }
}
