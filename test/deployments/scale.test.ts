// How many replicas a deployment has, over random loads on a simulated computer with a clock turned by hand.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decide, type ReplicaFacts, type Scaling, toDesired } from '#deployments/scale.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';

type Simulated = { -readonly [Name in keyof ReplicaFacts]: ReplicaFacts[Name] } & {
  loadMs: number;
};

const stepMs = 100;

/** Replicas that load, serve and drain as `decide` says. */
class Simulation {
  readonly scaling: Scaling;
  readonly #random: (limit: number) => number;
  replicas: Simulated[] = [];
  waiting = 0;
  revision = 1;
  isStopped = false;
  hasFailed = false;
  now = 0;
  started = 0;
  drained = 0;
  #surplusSince: number | null = null;

  constructor(scaling: Scaling, random: (limit: number) => number) {
    this.scaling = scaling;
    this.#random = random;
  }

  get running(): number {
    return this.replicas.reduce((sum, { outstanding }) => sum + outstanding, 0);
  }

  step(): void {
    this.now += stepMs;
    for (const replica of this.replicas) {
      if (replica.state === 'starting' && this.now - replica.startedAt >= replica.loadMs) {
        replica.state = 'ready';
        replica.readyAt = this.now;
      }
    }
    this.replicas = this.replicas.filter(({ state }) => state !== 'stopping');
    for (const replica of this.replicas)
      if (replica.state === 'draining' && replica.outstanding === 0) replica.state = 'stopping';
    this.#serveWaiting();
    const { revision, hasFailed, isStopped, running, waiting, replicas, now } = this;
    const surplusSince = this.#surplusSince;
    const decision = decide(this.scaling, {
      ...{ revision, hasFailed, isStopped, running, waiting, replicas, now, surplusSince },
    });
    this.#surplusSince = decision.surplusSince;
    this.#check(decision.drain);
    for (const id of decision.resume) {
      const replica = this.replicas.find((one) => one.id === id);
      assert(replica?.state === 'draining' && replica.revision === revision);
      replica.state = 'ready';
    }
    for (const id of decision.drain) {
      const replica = this.replicas.find((one) => one.id === id);
      assert(replica?.state === 'starting' || replica?.state === 'ready');
      replica.state = 'draining';
      this.drained += 1;
    }
    for (let count = 0; count < decision.start; count++) this.#start();
    this.#checkMaximum();
  }

  end(count: number): void {
    for (let at = 0; at < count; at++) {
      const busy = this.replicas.filter(({ outstanding }) => outstanding > 0);
      const replica = busy[this.#random(Math.max(1, busy.length))];
      if (replica !== undefined) replica.outstanding -= 1;
    }
  }

  #start(): void {
    this.started += 1;
    this.replicas.push({
      id: `${this.started}`,
      revision: this.revision,
      state: 'starting',
      outstanding: 0,
      startedAt: this.now,
      readyAt: null,
      loadMs: stepMs * this.#random(50),
    });
  }

  #serveWaiting(): void {
    const ready = this.replicas.filter(({ state }) => state === 'ready');
    if (ready.length === 0) return;
    for (; this.waiting > 0; this.waiting--) {
      const least = ready.toSorted((one, other) => one.outstanding - other.outstanding)[0];
      if (least !== undefined) least.outstanding += 1;
    }
  }

  #check(drain: readonly string[]): void {
    for (const { id, revision, readyAt, startedAt } of this.replicas) {
      if (!drain.includes(id) || this.isStopped || revision !== this.revision) continue;
      assert(readyAt !== null, 'a replica that is still loading is not removed');
      assert(this.now - readyAt >= readyAt - startedAt, 'a replica serves as long as it loaded');
      assert(this.replicas.length > this.scaling.min, 'never below the minimum');
    }
    const older = this.replicas.filter((one) => one.revision !== this.revision);
    const isReplaced = this.replicas.some(
      ({ revision, state }) => revision === this.revision && state === 'ready',
    );
    const isNeeded = toDesired(this.scaling, this.running + this.waiting) > 0;
    if (this.isStopped || isReplaced || !isNeeded) return;
    const serving = older.filter(({ state }) => state === 'ready');
    const kept = serving.filter(({ id }) => !drain.includes(id)).length;
    const expected = Math.min(serving.length, this.scaling.max);
    assert.equal(kept, expected, 'an old replica stays until it is replaced');
  }

  #checkMaximum(): void {
    const { max } = this.scaling;
    const current = this.replicas.filter(({ revision }) => revision === this.revision);
    assert(current.length <= max, 'never above the maximum');
    // A new revision starts beside the old one.
    assert(this.replicas.length <= max + 1, 'an update adds one replica at most');
  }
}

function newSimulation(random: (limit: number) => number): Simulation {
  const max = 1 + random(5);
  const scaling = {
    max,
    min: random(max + 1),
    target: 1 + random(4),
    idleMs: stepMs * (1 + random(50)),
  };
  return new Simulation(scaling, random);
}

describe('the number of replicas', () => {
  test('stays within its bounds under random load, updates and stops', () => {
    for (let run = 0; run < 200 * propertyRuns; run++) {
      const random = createRandom(propertySeed + run);
      const simulation = newSimulation(random);
      for (let step = 0; step < 400; step++) {
        if (random(4) === 0) simulation.waiting += random(6);
        if (random(3) === 0) simulation.end(random(5));
        if (random(60) === 0) simulation.revision += 1;
        if (random(100) === 0) simulation.isStopped = !simulation.isStopped;
        simulation.step();
      }
    }
  });

  test('every waiting request is served, and without requests the minimum is left', () => {
    for (let run = 0; run < 200 * propertyRuns; run++) {
      const random = createRandom(propertySeed + run);
      const simulation = newSimulation(random);
      simulation.waiting = 1 + random(10);
      for (let step = 0; step < 60 && simulation.waiting > 0; step++) simulation.step();
      assert.equal(simulation.waiting, 0);
      simulation.end(simulation.running);
      for (let step = 0; step < 1_000; step++) simulation.step();
      assert.equal(simulation.replicas.length, simulation.scaling.min);
    }
  });

  test('an update is completed, whatever came before it', () => {
    for (let run = 0; run < 200 * propertyRuns; run++) {
      const random = createRandom(propertySeed + run);
      const simulation = newSimulation(random);
      for (let step = 0; step < 200; step++) {
        if (random(4) === 0) simulation.waiting += random(4);
        if (random(3) === 0) simulation.end(random(5));
        if (random(10) === 0) simulation.revision += 1;
        simulation.step();
      }
      simulation.waiting += 1;
      for (let step = 0; step < 1_000; step++) {
        // Running requests end, and others follow.
        if (simulation.running > 0) simulation.end(1);
        simulation.waiting += 1;
        simulation.step();
      }
      for (const { revision } of simulation.replicas) assert.equal(revision, simulation.revision);
      assert(simulation.replicas.length > 0);
    }
  });

  test('a constant load settles, and then nothing starts or stops', () => {
    for (let run = 0; run < 200 * propertyRuns; run++) {
      const random = createRandom(propertySeed + run);
      const simulation = newSimulation(random);
      simulation.waiting = 1 + random(10);
      for (let step = 0; step < 1_000; step++) simulation.step();
      const { started, drained } = simulation;
      for (let step = 0; step < 1_000; step++) simulation.step();
      assert.deepEqual([simulation.started, simulation.drained], [started, drained]);
    }
  });

  test('a replica is removed only after the load was low for the idle time', () => {
    const idleMs = 5_000;
    const simulation = new Simulation({ min: 0, max: 1, target: 1, idleMs }, createRandom(3));
    simulation.waiting = 1;
    while (simulation.running === 0) simulation.step();
    simulation.end(1);
    const idleSince = simulation.now;
    while (simulation.drained === 0) simulation.step();
    assert(simulation.now - idleSince >= idleMs);
  });

  test('a failed revision starts nothing and leaves the older one in service', () => {
    const simulation = new Simulation(
      { min: 1, max: 2, target: 1, idleMs: stepMs },
      createRandom(1),
    );
    for (let step = 0; step < 100; step++) simulation.step();
    simulation.revision = 2;
    simulation.hasFailed = true;
    simulation.waiting = 1;
    for (let step = 0; step < 100; step++) simulation.step();
    assert.deepEqual(
      simulation.replicas.map(({ revision, state }) => [revision, state]),
      [[1, 'ready']],
    );
  });
});
