// Which backend gets a request: the prefix's own backend under a load bound, else the one with the least
// outstanding work; health; and the queue that forms when all are busy.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Backend } from '#inference/backends/backend.ts';
import type { EngineError, Task } from '#inference/engine.ts';
import { affinityOf, hashPrefix } from '#inference/routing/choose-backend.ts';
import { type Lease, type RoutedRequest, Router } from '#inference/routing/router.ts';
import { listOf, newBackend, type TestBackend } from '#test/support/backends.ts';
import { createHandClock } from '#test/support/clock.ts';

const chat = (...contents: string[]): Task => ({
  kind: 'chat',
  body: { model: 'm', messages: contents.map((content) => ({ role: 'user', content })) },
});

const routed = (given: Partial<RoutedRequest> = {}): RoutedRequest => ({
  task: chat('Hello'),
  caller: 'a',
  priority: 0,
  signal: new AbortController().signal,
  exclude: new Set(),
  ...given,
});

function routerOf(
  backends: TestBackend[],
  limits: { maxLength?: number; maxWaitMs?: number } = {},
) {
  const clock = createHandClock();
  const refusals: string[] = [];
  const router = new Router(listOf(...backends), clock, {
    maxLength: 4,
    maxWaitMs: 1000,
    ...limits,
    onRefused: (model, reason) => refusals.push(`${model} ${reason}`),
  });
  const now = (given: Partial<RoutedRequest> = {}): Lease => {
    const lease = router.tryAcquire('m', routed(given));
    assert(lease !== null, 'the request had to wait');
    return lease;
  };
  const wait = async (given: Partial<RoutedRequest> = {}): Promise<Lease> => {
    const request = routed(given);
    assert.equal(router.tryAcquire('m', request), null);
    return router.waitForLease('m', request);
  };
  return { router, clock, refusals, now, wait };
}

const overloaded = (error: EngineError) => error.failure === 'overloaded';
const unavailable = (error: EngineError) => error.code === 'model_unavailable';

describe('choosing a backend', () => {
  test('the same leading messages go to the same backend, whatever follows them', () => {
    const backends = ['a', 'b', 'c', 'd'].map((name) => newBackend(name));
    const { router, now } = routerOf(backends);
    for (let at = 0; at < 20; at++) {
      const first = now({ task: chat(`conversation ${at}`) });
      router.release(first);
      const later = now({ task: chat(`conversation ${at}`, 'more', `turn ${at}`) });
      router.release(later);
      assert.equal(later.backend, first.backend);
    }
  });

  test('prefixes spread over backends by weight, and one that leaves moves only its own', () => {
    const backends = [newBackend('a'), newBackend('b'), newBackend('c', { weight: 2 })];
    const prefixes = Array.from({ length: 4000 }, (_, at) => hashPrefix(chat(`user ${at}`)));
    const preferred = (among: Backend[], prefix: number) =>
      among.reduce((best, it) => (affinityOf(prefix, it) > affinityOf(prefix, best) ? it : best));
    const shares = new Map<Backend, number>();
    for (const prefix of prefixes) {
      const one = preferred(backends, prefix);
      shares.set(one, (shares.get(one) ?? 0) + 1);
      const rest = backends.filter((backend) => backend !== backends[0]);
      if (one !== backends[0]) assert.equal(preferred(rest, prefix), one);
    }
    const [a = 0, b = 0, c = 0] = backends.map((backend) => shares.get(backend));
    assert(a > 800 && a < 1200 && b > 800 && b < 1200 && c > 1800 && c < 2200, `${a} ${b} ${c}`);
  });

  test('a popular prefix stays under the load bound: no backend has far more than its share', () => {
    const backends = ['a', 'b', 'c', 'd'].map((name) => newBackend(name));
    const { now } = routerOf(backends);
    for (let count = 1; count <= 200; count++) {
      now();
      const most = Math.max(...backends.map(({ outstanding }) => outstanding));
      assert(most <= Math.ceil((1.25 * count) / 4) + 2, `${most} of ${count}`);
    }
  });

  test('beyond the bound, the least loaded relative to its weight is chosen', () => {
    const backends = [newBackend('a', { weight: 3 }), newBackend('b')];
    const { now } = routerOf(backends);
    for (let count = 0; count < 400; count++) now({ task: chat(`${count}`) });
    for (const { outstanding, weight } of backends) {
      assert(outstanding / weight <= 1.25 * 100 + 2, `${outstanding} of 400 at weight ${weight}`);
    }
  });

  test('draining, ejected and excluded backends get no request', () => {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => newBackend(name)) as TestBackend[];
    assert(a && b && c && d);
    const { now } = routerOf([a, b, c, d]);
    a.draining = true;
    for (let at = 0; at < 3; at++) b.health.failed('down');
    for (let at = 0; at < 8; at++) {
      assert.equal(now({ task: chat(`${at}`), exclude: new Set([c]) }).backend, d);
    }
  });

  test('with no backend left a request is refused as unavailable at once, with a retry-after', () => {
    const { router, clock } = routerOf([]);
    assert.throws(() => router.tryAcquire('m', routed()), { code: 'no_backend' });
    const down = newBackend('a', {}, clock);
    const { router: other } = routerOf([down]);
    for (let at = 0; at < 3; at++) down.health.failed('down');
    assert.throws(
      () => other.tryAcquire('m', routed()),
      (error: EngineError) => unavailable(error) && error.retryAfterMs === 1000,
    );
  });

  test('a backend on probation gets one request at a time', async () => {
    const clock = createHandClock();
    const backend = newBackend('a', {}, clock);
    const { router, now, wait } = routerOf([backend]);
    for (let at = 0; at < 3; at++) backend.health.failed('down');
    clock.turn(2000);
    const probe = now();
    assert(probe.isProbe);
    const second = wait();
    const third = wait();
    backend.health.succeeded();
    router.release(probe);
    assert.equal((await second).isProbe, false);
    await third;
    assert.equal(backend.outstanding, 2);
  });

  test('a backend that proves healthy during a long response is freed, also for its next probation', async () => {
    const clock = createHandClock();
    const backend = newBackend('a', {}, clock);
    const { router, now, wait } = routerOf([backend]);
    const eject = () => {
      for (let at = 0; at < 3; at++) backend.health.failed('down');
      clock.turn(5000);
    };
    eject();
    const long = now();
    const waiting = wait();
    backend.health.succeeded();
    router.proven(long);
    await waiting;
    eject();
    const next = now();
    assert(next.isProbe);
    router.release(long);
    void wait();
    assert.equal(router.queued('m'), 1);
  });

  test('a request that waits for a failing probation is refused as unavailable', async () => {
    const clock = createHandClock();
    const backend = newBackend('a', {}, clock);
    const { router, now, wait } = routerOf([backend]);
    for (let at = 0; at < 3; at++) backend.health.failed('down');
    clock.turn(2000);
    const probe = now();
    const second = assert.rejects(wait(), unavailable);
    backend.health.failed('still down');
    router.release(probe);
    await second;
  });
});

describe('the queue of a model', () => {
  const busy = (concurrency = 1) => newBackend('a', { concurrency });

  test('a slot that becomes free goes to waiting requests, callers in turn', async () => {
    const { router, now, wait } = routerOf([busy()], { maxLength: 8 });
    let lease = now();
    const order: string[] = [];
    const queue = ['a', 'a', 'a', 'b', 'c'].map((caller, at) =>
      wait({ caller }).then((got) => {
        order.push(`${caller}${at}`);
        lease = got;
      }),
    );
    assert.equal(router.queued('m'), 5);
    for (let at = 0; at < queue.length; at++) {
      router.release(lease);
      await new Promise((done) => setImmediate(done));
    }
    await Promise.all(queue);
    assert.deepEqual(order, ['a0', 'b3', 'c4', 'a1', 'a2']);
    assert.equal(router.queued('m'), 0);
  });

  test('a lower number goes first', async () => {
    const { router, now, wait } = routerOf([busy()]);
    let lease = now();
    const order: number[] = [];
    const queue = [5, 0, -5].map((priority) =>
      wait({ priority }).then((got) => {
        order.push(priority);
        lease = got;
      }),
    );
    for (let at = 0; at < 3; at++) {
      router.release(lease);
      await new Promise((done) => setImmediate(done));
    }
    await Promise.all(queue);
    assert.deepEqual(order, [-5, 0, 5]);
  });

  test('a full queue refuses the caller that fills it, and makes room for another', async () => {
    const { now, wait, refusals } = routerOf([busy()]);
    now();
    const own = Array.from({ length: 4 }, () => wait());
    const last = assert.rejects(own[3] as Promise<Lease>, overloaded);
    await assert.rejects(wait(), overloaded);
    wait({ caller: 'b' });
    await last;
    assert.deepEqual(refusals, ['m full', 'm full']);
  });

  test('retry-after follows the rate at which backends become free', async () => {
    const { router, now, wait, clock } = routerOf([busy(4)], { maxWaitMs: 60_000 });
    const leases = Array.from({ length: 4 }, () => now());
    for (let at = 0; at < 4; at++) wait({ caller: `${at}` });
    const refusedFor = (retryAfterMs: number) =>
      assert.rejects(wait({ caller: '0' }), { failure: 'overloaded', retryAfterMs });
    await refusedFor(1000);
    for (const lease of leases.slice(0, 2)) {
      clock.turn(3000);
      router.release(lease);
    }
    for (let at = 4; at < 6; at++) wait({ caller: `${at}` });
    await refusedFor(15_000);
  });

  test('a request that waits past the deadline is refused as overloaded', async () => {
    const { router, now, wait, clock, refusals } = routerOf([busy()]);
    now();
    const early = assert.rejects(wait(), overloaded);
    clock.turn(600);
    wait();
    clock.turn(600);
    router.recheck();
    await early;
    assert.deepEqual([router.queued('m'), refusals], [1, ['m deadline']]);
  });

  test('a clock that is set back makes no request wait longer than the maximum', async () => {
    const { router, now, wait, clock } = routerOf([busy()]);
    now();
    const early = assert.rejects(wait(), overloaded);
    clock.turn(-3_600_000);
    router.recheck();
    assert.equal(router.queued('m'), 1);
    clock.turn(1000);
    router.recheck();
    await early;
  });

  test('new limits hold at once, also for requests that wait already', async () => {
    const { router, now, wait, clock } = routerOf([busy()]);
    now();
    const first = wait();
    router.configure({ maxLength: 1, maxWaitMs: 50 });
    await assert.rejects(wait(), overloaded);
    router.configure({ maxLength: 2, maxWaitMs: 50 });
    const second = assert.rejects(wait(), overloaded);
    clock.turn(50);
    router.recheck();
    await second;
    router.configure({ maxLength: 2, maxWaitMs: 5000 });
    clock.turn(950);
    router.recheck();
    await assert.rejects(first, overloaded);
  });

  test('an aborted request leaves the queue at once', async () => {
    const { router, now, wait } = routerOf([busy()]);
    const lease = now();
    const leaving = new AbortController();
    const gone = assert.rejects(wait({ signal: leaving.signal }), /left/);
    const next = wait();
    leaving.abort(new Error('left'));
    assert.equal(router.queued('m'), 1);
    await gone;
    router.release(lease);
    await next;
    await assert.rejects(wait({ signal: leaving.signal }), /left/);
  });

  test('a later request overtakes only one that cannot use the free backend', async () => {
    const [a, b] = [busy(), newBackend('b', { concurrency: 1 })];
    const { router, now, wait } = routerOf([a, b]);
    const leases = [now(), now()];
    const notA = wait({ exclude: new Set([a]) });
    const any = wait();
    const onA = leases.find(({ backend }) => backend === a);
    const onB = leases.find(({ backend }) => backend === b);
    assert(onA && onB);
    // The first request can't use this backend. The next one can and is not held up.
    router.release(onA);
    assert.equal((await any).backend, a);
    router.release(onB);
    assert.equal((await notA).backend, b);
  });

  test('a backend that is added serves waiting requests before any lease ends', async () => {
    const backends = [busy()];
    const list = { forModel: () => backends, hasEnded: async () => false, close: async () => {} };
    const router = new Router(list, createHandClock(), { maxLength: 4, maxWaitMs: 60_000 });
    router.tryAcquire('m', routed());
    const waiting = router.waitForLease('m', routed());
    backends.push(newBackend('b'));
    assert.equal((await waiting).backend.name, 'b');
  });

  test('a request for one backend alone waits for that one, whatever the others do', async () => {
    const [wanted, idle] = [busy(), newBackend('idle')];
    const { router } = routerOf([wanted, idle]);
    const first = await router.leaseOf(wanted, routed());
    assert.equal(first.backend, wanted);
    const second = router.leaseOf(wanted, routed());
    assert.equal(router.queued('m'), 1);
    router.release(first);
    assert.equal((await second).backend, wanted);
    assert.equal(idle.taken, 0);
  });

  test('a request for one backend alone is refused when that one is replaced', async () => {
    const wanted = busy();
    let backends = [wanted];
    const list = { forModel: () => backends, hasEnded: async () => false, close: async () => {} };
    const router = new Router(list, createHandClock(), { maxLength: 4, maxWaitMs: 60_000 });
    await router.leaseOf(wanted, routed());
    const waiting = assert.rejects(router.leaseOf(wanted, routed()), unavailable);
    backends = [newBackend('b')];
    router.recheck();
    await waiting;
  });

  test('a request that waits for a backend that starts to drain is refused as unavailable', async () => {
    const backend = busy();
    const { router, now, wait } = routerOf([backend]);
    now();
    const waiting = assert.rejects(wait(), unavailable);
    backend.draining = true;
    router.recheck();
    await waiting;
  });
});
