// Health of a backend: ejected after failures in a row, for longer each time, tried by one request, well again.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createHealth, createStatistics } from '#inference/backends/health.ts';
import { createHandClock } from '#test/support/clock.ts';

const settings = { ejectAfter: 3, ejectMs: 1_000, maxEjectMs: 10_000 };

function start(random = () => 1) {
  const clock = createHandClock();
  const ejected: number[] = [];
  const health = createHealth(clock, {
    settings: () => settings,
    random,
    onEjected: (_reason, forMs) => ejected.push(forMs),
  });
  const fail = (times: number) => {
    for (let count = 0; count < times; count++) health.failed('refused');
  };
  return { clock, health, ejected, fail };
}

describe('the health of a backend', () => {
  it('consecutive failures eject it, and a success resets the count', () => {
    const { health, fail } = start();
    fail(2);
    health.succeeded();
    fail(2);
    assert.equal(health.state(), 'healthy');
    assert.equal(health.retryAfterMs(), 0);
    fail(1);
    assert.equal(health.state(), 'ejected');
    assert.equal(health.retryAfterMs(), 1_000);
    assert.equal(health.reason(), 'refused');
  });

  it('after the ejection one request is tried: a success heals, a failure ejects for twice as long', () => {
    const { clock, health, ejected, fail } = start();
    fail(3);
    clock.turn(1_000);
    assert.equal(health.state(), 'probation');
    assert.equal(health.retryAfterMs(), 0);
    fail(1);
    assert.equal(health.state(), 'ejected');
    clock.turn(2_000);
    health.succeeded();
    assert.equal(health.state(), 'healthy');
    assert.equal(health.reason(), null);
    fail(3);
    assert.deepEqual(ejected, [1_000, 2_000, 1_000]);
    assert.equal(health.ejections(), 3);
  });

  it('an ejection never exceeds the limit, however often it fails', () => {
    const { clock, health, ejected, fail } = start();
    fail(3);
    for (let round = 0; round < 2_000; round++) {
      clock.turn(health.retryAfterMs());
      fail(1);
    }
    assert.equal(Math.max(...ejected), 10_000);
    assert.equal(ejected.at(-1), 10_000);
  });

  it('backends that failed together return at different times', () => {
    const early = start(() => 0);
    const late = start(() => 1);
    early.fail(3);
    late.fail(3);
    assert.deepEqual([...early.ejected, ...late.ejected], [750, 1_000]);
  });

  it('failures of requests that ran when it was ejected do not count again', () => {
    const { health, ejected, fail } = start();
    fail(8);
    assert.equal(ejected.length, 1);
    assert.equal(health.retryAfterMs(), 1_000);
  });

  it('a response to a probe or an old request puts it on probation, not to health', () => {
    for (const sign of ['responded', 'succeeded'] as const) {
      const { health, fail } = start();
      fail(3);
      health[sign]();
      assert.equal(health.state(), 'probation');
      health.responded();
      assert.equal(health.state(), 'probation');
      health.succeeded();
      assert.equal(health.state(), 'healthy');
    }
  });

  it('a response to a probe does not hide failing requests', () => {
    const { health, fail } = start();
    fail(2);
    health.responded();
    fail(1);
    assert.equal(health.state(), 'ejected');
  });
});

describe('the statistics of a backend', () => {
  it('cover the last minute, the last hundred and the last five minutes', () => {
    const clock = createHandClock();
    const statistics = createStatistics(clock);
    assert.equal(statistics.firstTokenMs(), null);
    for (let count = 0; count < 60; count++)
      statistics.observe({ firstTokenMs: 900, work: null, error: 'It broke.' });
    assert.equal(statistics.requestsPerSecond(), 1);
    clock.turn(59_000);
    assert.equal(statistics.requestsPerSecond(), 1);
    clock.turn(1_000);
    assert.equal(statistics.requestsPerSecond(), 0);
    assert.equal(statistics.errors(), 60);
    for (let count = 1; count <= 100; count++) {
      statistics.observe({ firstTokenMs: count, work: null, error: null });
    }
    statistics.observe({ firstTokenMs: null, work: null, error: null });
    assert.equal(statistics.firstTokenMs(), 50);
    clock.turn(240_000);
    assert.equal(statistics.errors(), 0);
  });
});
