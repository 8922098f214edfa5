// How the requests of a model are divided among its deployments.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { divideDemand, hasNewRequests, type Share } from '#deployments/decision/demand.ts';
import { RemoteDemand } from '#deployments/peers/remote-demand.ts';
import { createHandClock } from '#test/support/clock.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';

const share = (name: string, given: Partial<Share> = {}): Share => ({
  ...{ name, weight: 1, target: 4, replicas: 0, queued: 0, max: 2, running: 0 },
  ...given,
});
const divide = (waiting: number, ...shares: Share[]) =>
  Object.fromEntries(divideDemand(waiting, shares));

describe('the requests of a model', () => {
  test('start one replica if one is enough: of the heaviest deployment, or the first by name', () => {
    assert.deepEqual(divide(3, share('b'), share('a')), { a: 3, b: 0 });
    assert.deepEqual(divide(3, share('a'), share('b', { weight: 2 })), { a: 0, b: 3 });
  });

  test('go to replicas that exist before another one is started', () => {
    assert.deepEqual(divide(4, share('a'), share('b', { replicas: 1 })), { a: 0, b: 4 });
    assert.deepEqual(divide(5, share('a'), share('b', { replicas: 1 })), { a: 1, b: 4 });
  });

  test('that one deployment runs beyond its maximum are given to the others', () => {
    const full = share('a', { replicas: 2, running: 11 });
    assert.deepEqual(divide(0, full, share('b')), { a: 0, b: 3 });
  });

  test('are given to one deployment each, as many as there is room for', () => {
    for (let run = 0; run < propertyRuns(500); run++) {
      const random = createRandom(propertySeed + run);
      const shares = Array.from({ length: 1 + random(4) }, (_, at) => {
        const max = random(4);
        return share(`d${at}`, {
          ...{ weight: 1 + random(5), target: 1 + random(5), max },
          ...{ replicas: random(max + 1), running: random(20) },
        });
      });
      const waiting = random(40);
      const given = divideDemand(waiting, shares);
      const sum = (values: number[]) => values.reduce((all, one) => all + one, 0);
      const roomOf = ({ max, target, running }: Share) => Math.max(0, max * target - running);
      const overflow = sum(
        shares.map(({ max, target, running }) => Math.max(0, running - max * target)),
      );
      assert.equal(sum([...given.values()]), Math.min(waiting + overflow, sum(shares.map(roomOf))));
      for (const one of shares) assert((given.get(one.name) ?? 0) <= roomOf(one));
    }
  });
});

describe('a deployment that waits for a machine', () => {
  const queued = share('a', { queued: 1, max: 0 });
  test('leaves the requests to another one, and keeps them if there is none', () => {
    assert.deepEqual(divide(3, queued), { a: 3 });
    assert.deepEqual(divide(3, queued, share('b')), { a: 0, b: 3 });
    assert.deepEqual(divide(9, queued, share('b')), { a: 1, b: 8 });
  });
});

describe('new requests', () => {
  test('are seen though another replica has left, or the count of one began anew', () => {
    const hasNew = (before: Record<string, number>, after: Record<string, number>) =>
      hasNewRequests(new Map(Object.entries(before)), new Map(Object.entries(after)));
    assert(hasNew({ left: 10, stays: 1 }, { stays: 2 }));
    assert(hasNew({ woken: 10 }, { woken: 1 }));
    assert(hasNew({}, { started: 1 }));
    assert(!hasNew({ left: 10, stays: 1 }, { stays: 1 }));
    assert(!hasNew({ rests: 10 }, { rests: 0 }));
  });
});

describe('the requests that wait on other servers', () => {
  test('count until their server was silent for three seconds', () => {
    const clock = createHandClock();
    const demand = new RemoteDemand(clock);
    demand.set('d', 'a', 2);
    clock.turn(2_000);
    demand.set('d', 'b', 3);
    assert.deepEqual([demand.of('d'), demand.of('other')], [5, 0]);
    clock.turn(2_000);
    assert.equal(demand.of('d'), 3);
    demand.set('d', 'b', 0);
    assert.equal(demand.of('d'), 0);
  });

  test('are kept for a bounded number of names, of which the newest count', () => {
    const demand = new RemoteDemand(createHandClock());
    for (let at = 0; at < 1_000; at++) demand.set('d', `server-${at}`, 1);
    assert.equal(demand.of('d'), 256);
    demand.set('d', 'server-999', 45);
    demand.set('d', 'server-0', 1);
    assert.equal(demand.of('d'), 300);
  });
});
