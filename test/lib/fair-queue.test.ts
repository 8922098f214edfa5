// The queue under random operations: bounded, fair, without starvation, and no item is forgotten.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineError, Task } from '#inference/engine.ts';
import { type Lease, Router } from '#inference/routing/router.ts';
import { FairQueue } from '#lib/async/fair-queue.ts';
import { listOf, newBackend, type TestBackend } from '#test/support/backends.ts';
import { createHandClock } from '#test/support/clock.ts';
import { propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';

const task: Task = { kind: 'completion', body: { model: 'm', prompt: 'x' } };
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('under any arrivals and departures slots are used, none twice, and every request ends', async () => {
  for (let round = 0; round < 20; round++) {
    const random = createRandom(propertySeed + round);
    const clock = createHandClock();
    const backends = [2, 1, 3].map((concurrency, at) =>
      newBackend(`${at}`, { concurrency }, clock),
    );
    const limits = { maxLength: 10, maxWaitMs: 5000 };
    const router = new Router(listOf(...backends), clock, limits);
    const held: Lease[] = [];
    /** Waiting requests, and whether they may not use the first backend. */
    const leaving = new Map<AbortController, boolean>();
    let asked = 0;
    let ended = 0;

    function check(): void {
      assert(router.queued('m') <= limits.maxLength);
      for (const { outstanding, concurrency } of backends)
        assert(outstanding <= (concurrency ?? 0));
      assert.equal(
        backends.reduce((sum, { outstanding }) => sum + outstanding, 0),
        held.length,
      );
      const hasPlace = (at: number) => {
        const { draining, outstanding, concurrency } = backends[at] as TestBackend;
        return !draining && outstanding < (concurrency ?? 0);
      };
      const isLeft = 'a request waits though a slot is free';
      assert(!(hasPlace(1) || hasPlace(2)) || leaving.size === 0, isLeft);
      assert(!hasPlace(0) || [...leaving.values()].every((isPicky) => isPicky), isLeft);
      assert.equal(leaving.size, router.queued('m'));
      assert.equal(asked, ended + held.length + router.queued('m'));
    }

    async function request(): Promise<void> {
      const controller = new AbortController();
      const isPicky = random(5) === 0;
      asked++;
      try {
        const routed = {
          task,
          caller: `caller ${random(4)}`,
          priority: random(3) - 1,
          signal: controller.signal,
          exclude: new Set(isPicky ? backends.slice(0, 1) : []),
        };
        const lease = router.tryAcquire('m', routed);
        if (lease === null) leaving.set(controller, isPicky);
        held.push(lease ?? (await router.waitForLease('m', routed)));
      } catch (error) {
        ended++;
        const { failure } = error as EngineError;
        assert(failure === 'overloaded' || failure === 'unavailable' || controller.signal.aborted);
      } finally {
        leaving.delete(controller);
      }
    }

    for (let step = 0; step < 150; step++) {
      const kind = random(10);
      if (kind < 5) void request();
      else if (kind < 8) {
        const [lease] = held.splice(random(Math.max(1, held.length)), 1);
        if (lease !== undefined) {
          router.release(lease);
          ended++;
        }
      } else if (kind === 8)
        [...leaving.keys()][random(Math.max(1, leaving.size))]?.abort(new Error('left'));
      else {
        const backend = backends[1 + random(2)];
        if (backend !== undefined) backend.draining = !backend.draining;
        clock.turn(random(1000));
        router.recheck();
      }
      await settled();
      router.recheck();
      await settled();
      check();
    }
    while (held.length > 0 || router.queued('m') > 0) {
      for (const backend of backends) backend.draining = false;
      for (const lease of held.splice(0)) {
        router.release(lease);
        ended++;
      }
      router.recheck();
      await settled();
    }
    check();
    assert.equal(asked, ended);
  }
});

test('callers of one priority are at most one turn apart, each in its own order', () => {
  for (let round = 0; round < 50; round++) {
    const random = createRandom(propertySeed + round);
    const queue = new FairQueue<{ caller: string; at: number }>();
    const waiting = new Map<string, number>();
    const last = new Map<string, number>();
    let turns: string[] = [];
    for (let at = 0; at < 200; at++) {
      if (random(3) > 0) {
        const caller = `${random(5)}`;
        queue.push(caller, { caller, at });
        waiting.set(caller, (waiting.get(caller) ?? 0) + 1);
        // A new caller has no turns to make up for.
        turns = turns.filter((one) => one !== caller || (waiting.get(caller) ?? 0) > 1);
        continue;
      }
      const item = queue.take(() => true);
      if (item === undefined) continue;
      assert(item.at > (last.get(item.caller) ?? -1));
      last.set(item.caller, item.at);
      const since = turns.lastIndexOf(item.caller);
      const others = [...waiting].filter(([caller, count]) => count > 0 && caller !== item.caller);
      // Every caller that has waited since this caller's last turn had one in between.
      if (since >= 0) {
        const between = turns.slice(since + 1);
        for (const [caller] of others) {
          if (turns.slice(0, since).includes(caller)) assert(between.includes(caller));
        }
      }
      turns.push(item.caller);
      waiting.set(item.caller, (waiting.get(item.caller) ?? 1) - 1);
    }
  }
});

test('the least urgent of many priorities still gets its turn while urgent ones keep coming', () => {
  const queue = new FairQueue<number>();
  const levels = 20;
  for (let priority = 0; priority < levels; priority++) queue.push('a', priority, priority);
  let turns = 0;
  for (let item = queue.take(() => true); item !== levels - 1; item = queue.take(() => true)) {
    assert(item !== undefined && ++turns <= levels * 8, `${turns} turns`);
    queue.push('a', item, item);
  }
  assert(turns > levels, 'priorities were not looked at');
});
