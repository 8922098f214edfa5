// Probes: one at a time to each, spread over time, and what an answer or its absence does.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createHealth } from '#inference/backends/health.ts';
import { neverImplausible } from '#inference/backends/implausible-counts.ts';
import { newUpstreamBackend } from '#inference/backends/managed.ts';
import { createProber } from '#inference/backends/prober.ts';
import type { ProbeUpstream, UpstreamSpec } from '#inference/backends/spec.ts';
import { type Engine, EngineError } from '#inference/engine.ts';
import { createHandClock } from '#test/support/clock.ts';

const spec = (name: string): UpstreamSpec => ({
  source: 'file',
  model: 'm',
  name,
  url: 'http://10.0.0.1/v1/',
  apiKey: 'sk-1',
  upstreamModel: 'org/name',
  server: 'vllm',
  headers: {},
  weight: 1,
  concurrency: null,
  timeouts: { connectMs: 1, firstByteMs: 1, idleMs: 1 },
  continueStreams: null,
});

function start(probe: ProbeUpstream, names = ['a']) {
  const clock = createHandClock();
  const settings = () => ({ ejectAfter: 2, ejectMs: 60_000, maxEjectMs: 60_000 });
  const backends = names.map((name) => {
    const backend = newUpstreamBackend(clock, spec(name), {} as Engine, {
      health: createHealth(clock, { settings, random: () => 1 }),
      implausible: neverImplausible,
    });
    backend.spec = spec(name);
    return backend;
  });
  let turn = 0;
  const prober = createProber(clock, {
    backends: () => backends,
    probe,
    everyMs: () => 10_000,
    random: () => turn++ / names.length,
  });
  const backend = backends[0];
  assert(backend);
  return { clock, prober, backends, backend };
}

const well = { models: ['org/name'], contextWindow: 32_768, latencyMs: 1 };

describe('probes', () => {
  it('learn the context window, and record their time', async () => {
    const { clock, prober, backend } = start(async (options) => {
      assert.equal(options.url, 'http://10.0.0.1/v1');
      return well;
    });
    assert.equal(backend.contextWindow, null);
    await prober.tick();
    assert.equal(backend.contextWindow, 32_768);
    assert.equal(backend.checkedAt, clock.now());
  });

  it('run at intervals, each backend at its own time', async () => {
    const asked: string[] = [];
    const { clock, prober } = start(
      async ({ name }) => {
        asked.push(name);
        return well;
      },
      ['a', 'b'],
    );
    await prober.tick();
    assert.deepEqual(asked, ['a']);
    clock.turn(5_000);
    await prober.tick();
    assert.deepEqual(asked, ['a', 'b']);
    clock.turn(5_000);
    await prober.tick();
    await prober.tick();
    assert.deepEqual(asked, ['a', 'b', 'a']);
  });

  it('never overlap for one backend', async () => {
    const pending = Promise.withResolvers<typeof well>();
    let asked = 0;
    const { clock, prober } = start(() => {
      asked += 1;
      return pending.promise;
    });
    const first = prober.tick();
    clock.turn(60_000);
    await prober.tick();
    assert.equal(asked, 1);
    pending.resolve(well);
    await first;
    await prober.tick();
    assert.equal(asked, 2);
  });

  it('eject a backend that does not respond, and put it on probation once it does', async () => {
    let isUp = false;
    const { clock, prober, backend } = start(async () => {
      if (!isUp) throw new EngineError('unavailable', 'The backend refused the connection.');
      return well;
    });
    await prober.tick();
    assert.equal(backend.health.state(), 'healthy');
    clock.turn(10_000);
    await prober.tick();
    assert.equal(backend.health.state(), 'ejected');
    assert.equal(
      backend.health.reason(),
      'Health check failed: The backend refused the connection.',
    );
    isUp = true;
    clock.turn(10_000);
    await prober.tick();
    assert.equal(backend.health.state(), 'probation');
  });

  it('do not blame a server that refuses the probe but responds', async () => {
    const { clock, prober, backend } = start(async () => {
      throw new EngineError('overloaded', 'Too many requests.');
    });
    for (let round = 0; round < 5; round++) {
      await prober.tick();
      clock.turn(10_000);
    }
    assert.equal(backend.health.state(), 'healthy');
  });

  it('of a broken model list do not eject a backend whose requests succeed', async () => {
    const { clock, prober, backend } = start(async () => {
      throw new EngineError('unavailable', 'The backend responded with status 500.', {
        isDoubtful: true,
      });
    });
    const probe = async (times: number) => {
      for (let round = 0; round < times; round++) {
        await prober.tick();
        clock.turn(10_000);
      }
      return backend.health.state();
    };
    backend.health.succeeded();
    assert.equal(await probe(5), 'healthy');
    backend.health.failed('The backend aborted its response.');
    assert.equal(await probe(1), 'ejected', 'no request succeeded since');
  });

  it('that a shutdown cuts off do not count', async () => {
    const { clock, prober, backend } = start(
      (_options, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    const first = prober.tick();
    prober.stop();
    await first;
    clock.turn(10_000);
    await prober.tick();
    assert.equal(backend.health.reason(), null);
    assert.equal(backend.checkedAt, null);
  });
});
