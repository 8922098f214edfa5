// The list of backends: its order, what a change keeps and what it replaces, and how engines leave.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { BackendRegistry } from '#inference/backends/registry.ts';
import type { UpstreamOptions, UpstreamSpec } from '#inference/backends/spec.ts';
import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import type { Bindings, ServingWeights } from '#inference/weights/bindings.ts';
import { createHandClock } from '#test/support/clock.ts';
import { until } from '#test/support/until.ts';

const model = 'hermes3-8b';
const health = { ejectAfter: 3, ejectMs: 1_000, maxEjectMs: 10_000 };

/** An engine that does nothing but be open or closed. */
function newEngine(name: string, requests = () => 0) {
  let isClosed = false;
  const unused = () => Promise.reject(new Error('not asked for anything'));
  const status = { loaded: false, pid: null, queued: 0, running: 0, waiting: 0 };
  return {
    name,
    stream: unused,
    respond: unused,
    countPromptTokens: unused,
    preload: unused,
    unload: unused,
    status: () => ({ ...status, requests: requests() }),
    contextWindow: () => 4096,
    async close() {
      isClosed = true;
    },
    isClosed: () => isClosed,
  };
}

function newSpec(name: string, changes: Partial<UpstreamSpec> = {}): UpstreamSpec {
  return {
    source: 'file',
    model,
    name,
    url: 'http://10.0.0.1/v1',
    apiKey: null,
    upstreamModel: 'org/name',
    server: 'vllm',
    headers: {},
    weight: 1,
    concurrency: null,
    timeouts: { connectMs: 1, firstByteMs: 1, idleMs: 1 },
    continueStreams: null,
    ...changes,
  };
}

function newBindings() {
  const serving = new Map<string, ServingWeights>();
  const listeners = new Set<(model: string) => void>();
  const unused = () => Promise.reject(new Error('not part of this'));
  return {
    find: (id: string) => serving.get(id),
    list: () => [...serving.values()],
    modelsOf: () => [],
    subscribe(listener: (model: string) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    bind: unused,
    unbind: unused,
    refresh: unused,
    serve(id: string, weights: ServingWeights | null) {
      if (weights === null) serving.delete(id);
      else serving.set(id, weights);
      for (const listener of listeners) listener(id);
    },
  } satisfies Bindings & { serve: unknown };
}

const nothingLive = { specs: [], drained: new Set<string>(), served: new Set<string>() };

function start(specs: UpstreamSpec[] = [], { hasStandIn = true } = {}) {
  const clock = createHandClock();
  const catalog = createCatalog();
  const bindings = newBindings();
  const upstreams: (ReturnType<typeof newEngine> & { options: UpstreamOptions })[] = [];
  const local: ReturnType<typeof newEngine>[] = [];
  const busy = { weights: 0 };
  const registry = new BackendRegistry(
    {
      clock,
      log: pino({ level: 'silent' }),
      catalog,
      bindings,
      standIn: hasStandIn ? (newEngine('builtin') as LocalEngine) : null,
      openWeights({ name }) {
        const engine = newEngine(name, () => busy.weights);
        local.push(engine);
        return engine as LocalEngine;
      },
      openUpstream(options) {
        const engine = { ...newEngine(options.name), options };
        upstreams.push(engine);
        return engine;
      },
    },
    { specs, health },
    { checkEveryMs: 1, maxMs: 60_000 },
  );
  const names = (id = model) => registry.forModel(id).map(({ name }) => name);
  const setLive = (live: UpstreamSpec[]) => registry.setLive({ ...nothingLive, specs: live });
  return { clock, catalog, bindings, registry, upstreams, local, busy, names, setLive };
}

const weights = { path: '/w.gguf', name: 'owner--repo/w.gguf', checksum: '1', kind: null };

describe('the list of backends', () => {
  it('has those of the file in order, then live ones, then weights, and the stand-in only if there never was one', () => {
    const { registry, bindings, names, setLive } = start();
    assert.deepEqual(names(), ['builtin']);
    assert.equal(registry.forModel(model)[0]?.kind, 'stand-in');
    bindings.serve(model, weights);
    assert.deepEqual(names(), [weights.name]);
    setLive([newSpec('live', { source: 'live' })]);
    registry.configure([newSpec('b'), newSpec('a'), newSpec('x', { model: 'lfm-40b' })], health);
    assert.deepEqual(names(), ['b', 'a', 'live', weights.name]);
    assert.deepEqual(names('lfm-40b'), ['x']);
    assert.deepEqual(names('hermes3-70b'), ['builtin']);
    registry.configure([], health);
    setLive([]);
    bindings.serve(model, null);
    assert.deepEqual(names(), []);
    assert.deepEqual(registry.unrecorded(), [model, 'lfm-40b']);
    // The database has one of them, and another server's.
    registry.setLive({ ...nothingLive, served: new Set([model, 'hermes3-70b']) });
    assert.deepEqual(registry.unrecorded(), ['lfm-40b']);
    assert.deepEqual([names(), names('hermes3-70b')], [[], []]);
    // The stand-in was let in again.
    registry.setLive({ ...nothingLive, served: new Set(['lfm-40b']) });
    assert.deepEqual([names(), names('lfm-40b')], [['builtin'], []]);
  });

  it('without a stand-in, has only models that have or had a backend', () => {
    const { registry, names } = start([newSpec('a')], { hasStandIn: false });
    const listed = () => registry.listed().map(({ id }) => id);
    assert.deepEqual([names('lfm-40b'), listed()], [[], [model]]);
    registry.configure([], health);
    assert.deepEqual([names(), listed()], [[], [model]]);
  });

  it('is the same array until something changes', () => {
    const { registry, names } = start([newSpec('a')]);
    assert.equal(registry.forModel(model), registry.forModel(model));
    assert.deepEqual(names('not in the catalog'), []);
    for (const { id } of start().catalog.all()) assert.equal(registry.forModel(id).length, 1);
  });

  it('keeps an engine and its health over changes that are not about the engine', () => {
    const { registry, upstreams } = start([newSpec('a')]);
    const before = registry.find(model, 'a');
    before?.health.failed('refused');
    registry.configure([newSpec('a', { weight: 3, concurrency: 7 })], health);
    registry.setLive({ ...nothingLive, drained: new Set([`${model}/a`]) });
    const after = registry.find(model, 'a');
    assert.equal(after, before);
    assert.deepEqual([after?.weight, after?.concurrency, after?.draining], [3, 7, true]);
    assert.equal(upstreams.length, 1);
  });

  it('another address or key creates another engine, and the old one is closed after its last response', async () => {
    const { registry, upstreams } = start([newSpec('a')]);
    const old = registry.find(model, 'a');
    assert(old);
    old.outstanding = 1;
    registry.configure([newSpec('a', { apiKey: 'sk-new' })], health);
    assert.equal(upstreams.length, 2);
    assert.equal(upstreams[1]?.options.apiKey, 'sk-new');
    assert.equal(old.draining, true);
    assert.equal(upstreams[0]?.isClosed(), false);
    old.outstanding = 0;
    await until('the old engine is closed', () => upstreams[0]?.isClosed());
    assert.equal(upstreams[1]?.isClosed(), false);
  });

  it('a removed backend is listed until it is idle, but gets no new request', async () => {
    const { registry, upstreams, names, setLive } = start();
    setLive([newSpec('a', { source: 'live' })]);
    const old = registry.find(model, 'a');
    assert(old);
    old.outstanding = 2;
    setLive([]);
    assert.deepEqual(names(), []);
    assert.deepEqual(
      registry
        .all()
        .filter(({ name }) => name === 'a')
        .map(({ draining }) => draining),
      [true],
    );
    old.outstanding = 0;
    await until('it is gone', () => registry.all().every(({ name }) => name !== 'a'));
    assert(upstreams[0]?.isClosed());
  });

  it('a request that never ends is cut off at the retirement timeout', async () => {
    const { clock, registry, upstreams } = start([newSpec('a')]);
    const old = registry.find(model, 'a');
    assert(old);
    old.outstanding = 1;
    registry.configure([], health);
    clock.turn(60_000);
    await until('it is closed', () => upstreams[0]?.isClosed());
  });

  it('weights have one engine for all models, closed after its last request', async () => {
    const { bindings, registry, local, busy } = start();
    bindings.serve(model, weights);
    bindings.serve('hermes3-70b', weights);
    assert.equal(local.length, 1);
    assert.equal(registry.forModel(model)[0]?.engine, registry.forModel('hermes3-70b')[0]?.engine);
    busy.weights = 1;
    bindings.serve(model, { ...weights, checksum: '2' });
    bindings.serve('hermes3-70b', { ...weights, checksum: '2' });
    assert.equal(local.length, 2);
    assert.equal(local[0]?.isClosed(), false);
    busy.weights = 0;
    await until('the old weights are closed', () => local[0]?.isClosed());
    assert.equal(local[1]?.isClosed(), false);
  });

  it('a stream is continued by servers that are known or configured to support it', () => {
    const { catalog, registry } = start();
    const continues = (spec: UpstreamSpec) => {
      registry.configure([spec], health);
      return registry.find(model, spec.name)?.continues;
    };
    assert.equal(continues(newSpec('a')), true);
    assert.equal(continues(newSpec('a', { server: 'openai' })), false);
    assert.equal(continues(newSpec('a', { server: 'openai', continueStreams: true })), true);
    catalog.replace({ builtinIds: true, changes: new Map([[model, { continueStreams: false }]]) });
    assert.equal(continues(newSpec('a')), false);
  });

  it('a deployment holds requests while an earlier one of its name, which was removed, ends', () => {
    const { registry } = start();
    const toDeployed = (obstacle: string | null) => ({
      ...{ model, name: 'tested', backends: [] },
      hold: { maxLength: 1, maxWaitMs: 1, obstacle, readyBy: () => null, progress: () => null },
    });
    registry.setDeployed([toDeployed(null), toDeployed('It was removed.')]);
    const holding = registry
      .forModel(model)
      .map(({ hold, draining }) => [hold?.obstacle, draining]);
    assert.deepEqual(holding, [[null, false]]);
  });

  it('closing closes every engine, including retired ones', async () => {
    const { registry, upstreams, bindings, local } = start([newSpec('a'), newSpec('b')]);
    bindings.serve(model, weights);
    const leaving = registry.find(model, 'b');
    assert(leaving);
    leaving.outstanding = 1;
    registry.configure([newSpec('a')], health);
    await registry.close();
    assert.deepEqual(
      [...upstreams, ...local].map((engine) => engine.isClosed()),
      [true, true, true],
    );
  });
});
