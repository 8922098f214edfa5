// How many replicas a deployment has, over random loads on a simulated computer with a clock turned by hand.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Decision,
  decide,
  type ReplicaFacts,
  type Scaling,
  toDesired,
} from '#deployments/decision/scale.ts';
import { type Ladder, steps, toFirstStepMs, toStep } from '#deployments/ground/ladder.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';

type Simulated = { -readonly [Name in keyof ReplicaFacts]: ReplicaFacts[Name] } & {
  loadMs: number;
  /** What the drain is for; null if the replica is removed. */
  drainedSince: number | null;
  /** Every state that it had, without repetitions. */
  history: string[];
};

const stepMs = 100;
/** Replicas are ready at the next step. */
const loadAtOnce = () => 0;

/** Replicas that load, serve, drain, rest and wake as `decide` says. */
class Simulation {
  readonly scaling: Scaling;
  readonly #random: (limit: number) => number;
  replicas: Simulated[] = [];
  waiting = 0;
  revision = 1;
  isStopped = false;
  hasFailed = false;
  /** How many replicas find a machine. */
  machines = Number.POSITIVE_INFINITY;
  now = 0;
  started = 0;
  woken = 0;
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
      if (replica.isWaiting) this.#findMachine(replica);
      else if (replica.state === 'starting' && this.now - replica.loadingSince >= replica.loadMs) {
        setState(replica, 'ready');
        replica.readyAt = this.now;
      }
    }
    this.replicas = this.replicas.filter(
      ({ state, isWaiting }) => state !== 'stopping' && !(state === 'draining' && isWaiting),
    );
    for (const replica of this.replicas)
      if (replica.state === 'draining' && replica.outstanding === 0)
        this.#lower(replica, replica.drainedSince);
    this.#serveWaiting();
    const { revision, hasFailed, isStopped, running, waiting, replicas, now } = this;
    const surplusSince = this.#surplusSince;
    const decision = decide(this.scaling, {
      ...{ revision, hasFailed, isStopped, running, waiting, replicas, now, surplusSince },
    });
    this.#surplusSince = decision.surplusSince;
    this.#check(decision);
    for (const replica of this.#find(decision.resume)) {
      assert(replica.state === 'draining' && replica.revision === revision);
      setState(replica, 'ready');
    }
    for (const replica of this.#find(decision.wake)) this.#wake(replica);
    for (const replica of this.#find(decision.stop)) {
      assert.equal(replica.state, 'asleep');
      this.#lower(replica, replica.idleSince);
      assert.equal(replica.state, 'stopped');
    }
    for (const replica of this.#find(decision.rest)) {
      assert.equal(replica.state, 'ready');
      this.#drain(replica, surplusSince);
    }
    for (const replica of this.#find(decision.drain)) {
      assert.notEqual(replica.state, 'stopping');
      if (isResting(replica)) setState(replica, 'stopping');
      else if (replica.state !== 'draining' || replica.drainedSince !== null)
        this.#drain(replica, null);
    }
    for (let count = 0; count < decision.start; count++) this.#start();
    this.#checkMaximum();
  }

  #find(ids: readonly string[]): Simulated[] {
    return this.replicas.filter(({ id }) => ids.includes(id));
  }

  #drain(replica: Simulated, idleSince: number | null): void {
    setState(replica, 'draining');
    replica.drainedSince = idleSince;
    this.drained += 1;
  }

  #lower(replica: Simulated, idleSince: number | null): void {
    assert.equal(replica.outstanding, 0, 'it is drained before it sleeps');
    const step = idleSince === null ? 'gone' : toStep(this.scaling.ladder, this.now - idleSince);
    assert(step !== null, 'a step is due');
    replica.idleSince = idleSince;
    setState(replica, step === 'gone' ? 'stopping' : step);
  }

  #wake(replica: Simulated): void {
    assert(isResting(replica) && replica.revision === this.revision);
    setState(replica, 'starting');
    replica.loadingSince = this.now;
    replica.readyAt = null;
    replica.idleSince = null;
    this.woken += 1;
  }

  end(count: number): void {
    for (let at = 0; at < count; at++) {
      const busy = this.replicas.filter(({ outstanding }) => outstanding > 0);
      const replica = busy[this.#random(Math.max(1, busy.length))];
      if (replica !== undefined) replica.outstanding -= 1;
    }
  }

  #findMachine(replica: Simulated): void {
    const used = this.replicas.filter(({ isWaiting }) => !isWaiting).length;
    replica.isWaiting = used >= this.machines;
    replica.loadingSince = this.now;
  }

  #start(): void {
    this.started += 1;
    this.replicas.push({
      id: `${this.started}`,
      revision: this.revision,
      state: 'starting',
      isWaiting: true,
      outstanding: 0,
      startedAt: this.now,
      loadingSince: this.now,
      readyAt: null,
      idleSince: null,
      drainedSince: null,
      history: ['starting'],
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

  #check({ drain, rest, wake, start, resume }: Decision): void {
    const current = this.replicas.filter(({ revision }) => revision === this.revision);
    for (const one of this.#find(drain))
      assert(this.isStopped || one.revision !== this.revision || isResting(one) || one.isWaiting);
    for (const { readyAt, loadingSince } of this.#find(rest)) {
      assert(readyAt !== null, 'a replica that is still loading does not rest');
      assert(this.now - readyAt >= readyAt - loadingSince, 'a replica serves as long as it loaded');
      assert(current.filter(isLive).length > this.scaling.min, 'never below the minimum');
    }
    if (wake.length > 0) {
      const draining = current.filter(({ state }) => state === 'draining');
      assert.equal(resume.length, draining.length, 'draining replicas are resumed first');
      const stopped = this.#find(wake).some(({ state }) => state === 'stopped');
      const asleep = current.filter(({ id, state }) => state === 'asleep' && !wake.includes(id));
      assert(!stopped || asleep.length === 0, 'sleeping replicas wake before stopped ones');
    }
    const left = current.filter((one) => isResting(one) && !wake.includes(one.id));
    assert(start === 0 || left.length === 0, 'resting replicas wake before others start');
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
    for (const { history } of this.replicas) {
      const text = history.join(' ');
      assert.doesNotMatch(text, /(ready|starting) (asleep|stopped)/, 'drained before it rests');
      assert.doesNotMatch(text, /stopped asleep/, 'the ladder leads down');
    }
    // A new revision starts beside the old one.
    assert(this.replicas.length <= max + 1, 'an update adds one replica at most');
  }
}

const isLive = ({ state }: Simulated) => state === 'starting' || state === 'ready';
const isResting = ({ state }: Simulated) => state === 'asleep' || state === 'stopped';

function setState(replica: Simulated, state: Simulated['state']): void {
  replica.state = state;
  replica.history.push(state);
}

/** Steps that ascend, each left out at random but the last one. */
function newLadder(random: (limit: number) => number): Ladder {
  const [asleep = 0, stopped = 0, gone = 0] = Array.from({ length: 3 }, () => 1 + random(50))
    .toSorted((one, other) => one - other)
    .map((at, index) => (stepMs * (at + index)) / 1_000);
  const maybe = (seconds: number) => (random(2) === 0 ? null : seconds);
  return { asleep: maybe(asleep), stopped: maybe(stopped), gone };
}

/** True if a drain, which takes a step or two of the simulation, is shorter than the time between two steps. */
function isApart(ladder: Ladder): boolean {
  const times = steps.flatMap((step) => ladder[step] ?? []);
  return times.every((at, index) => index === 0 || at - Number(times[index - 1]) > 0.3);
}

function newSimulation(random: (limit: number) => number): Simulation {
  const max = 1 + random(5);
  const scaling = {
    max,
    min: random(max + 1),
    target: 1 + random(4),
    ladder: newLadder(random),
  };
  return new Simulation(scaling, random);
}

describe('the number of replicas', () => {
  test('stays within its bounds under random load, updates and stops', () => {
    for (let run = 0; run < propertyRuns(200); run++) {
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
    for (let run = 0; run < propertyRuns(200); run++) {
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
    for (let run = 0; run < propertyRuns(200); run++) {
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
    for (let run = 0; run < propertyRuns(200); run++) {
      const random = createRandom(propertySeed + run);
      const simulation = newSimulation(random);
      simulation.waiting = 1 + random(10);
      for (let step = 0; step < 1_000; step++) simulation.step();
      const count = () => [simulation.started, simulation.woken, simulation.drained];
      const before = count();
      for (let step = 0; step < 1_000; step++) simulation.step();
      assert.deepEqual(count(), before);
    }
  });

  test('a replica takes every step of its ladder in order, each after its idle time', () => {
    for (let run = 0; run < propertyRuns(200); run++) {
      const random = createRandom(propertySeed + run);
      const ladder = newLadder(random);
      const simulation = new Simulation({ min: 0, max: 1, target: 1, ladder }, random);
      simulation.waiting = 1;
      while (simulation.running === 0) simulation.step();
      simulation.end(1);
      const [replica] = simulation.replicas;
      assert(replica?.readyAt != null);
      const idleSince = simulation.now;
      while (simulation.drained === 0) simulation.step();
      assert(simulation.now - idleSince >= toFirstStepMs(ladder));
      // One that has to stay for as long as it loaded may come late, and leave steps out.
      const isLate = replica.readyAt - replica.loadingSince > toFirstStepMs(ladder);
      while (simulation.replicas.length > 0) {
        const state: Simulated['state'] = replica.state;
        if (state === 'asleep' || state === 'stopped')
          assert(simulation.now - idleSince >= Number(ladder[state]) * 1_000);
        simulation.step();
      }
      const expected = (['asleep', 'stopped'] as const).filter((step) => ladder[step] !== null);
      const seen = replica.history.filter((state) => state === 'asleep' || state === 'stopped');
      if (!isLate && isApart(ladder)) assert.deepEqual(seen, expected);
    }
  });

  test('a resting replica wakes for a request, and nothing else starts', () => {
    for (const states of [['asleep'], ['asleep', 'stopped']]) {
      const ladder = { asleep: 1, stopped: 3, gone: 100 };
      const simulation = new Simulation({ min: 0, max: 1, target: 1, ladder }, loadAtOnce);
      simulation.waiting = 1;
      while (simulation.running === 0) simulation.step();
      simulation.end(1);
      const [replica] = simulation.replicas;
      while (replica?.state !== states.at(-1)) simulation.step();
      simulation.waiting = 1;
      while (simulation.running === 0) simulation.step();
      assert.deepEqual([simulation.started, simulation.woken], [1, 1]);
    }
  });

  test('replicas that wait for a machine go when they are not needed, and ready ones stay', () => {
    const ladder = { asleep: null, stopped: null, gone: 1 };
    const simulation = new Simulation({ min: 0, max: 4, target: 1, ladder }, loadAtOnce);
    simulation.machines = 1;
    simulation.waiting = 4;
    for (let step = 0; step < 100; step++) simulation.step();
    assert.deepEqual([simulation.started, simulation.running], [4, 4]);
    simulation.end(3);
    for (let step = 0; step < 100; step++) simulation.step();
    assert.deepEqual(
      simulation.replicas.map(({ id, state }) => [id, state]),
      [['1', 'ready']],
    );
    simulation.end(1);
    for (let step = 0; step < 100; step++) simulation.step();
    assert.deepEqual(simulation.replicas, []);
  });

  test('a lower maximum holds at once, though no step of the ladder is due', () => {
    const ladder = { asleep: 10, stopped: null, gone: null };
    const toReplica = (state: ReplicaFacts['state'], id: string): ReplicaFacts => ({
      ...{ id, state, revision: 1, isWaiting: false, outstanding: 0 },
      ...{ startedAt: 0, loadingSince: 0, readyAt: 1 },
      idleSince: state === 'asleep' ? 1 : null,
    });
    const states = ['asleep', 'ready', 'asleep', 'ready'] as const;
    const replicas = states.map((state, at) => toReplica(state, `${at}`));
    const situation = {
      ...{ revision: 1, hasFailed: false, isStopped: false, running: 0, waiting: 0 },
      ...{ replicas, surplusSince: null, now: 2 },
    };
    const drained = (max: number) =>
      decide({ min: 0, max, target: 1, ladder }, situation).drain.toSorted();
    assert.deepEqual(drained(4), []);
    assert.equal(drained(3).length, 1);
    assert.deepEqual(drained(2), ['0', '2']);
    assert.deepEqual(drained(1), ['0', '1', '2']);
  });

  test('resting replicas of an older revision are removed', () => {
    const ladder = { asleep: 1, stopped: null, gone: null };
    const simulation = new Simulation({ min: 0, max: 2, target: 1, ladder }, loadAtOnce);
    simulation.waiting = 2;
    while (simulation.running < 2) simulation.step();
    simulation.end(2);
    while (!simulation.replicas.every(({ state }) => state === 'asleep')) simulation.step();
    simulation.revision = 2;
    for (let step = 0; step < 3; step++) simulation.step();
    assert.deepEqual(simulation.replicas, []);
  });

  test('a failed revision starts nothing and leaves the older one in service', () => {
    const ladder = { asleep: null, stopped: null, gone: stepMs / 1_000 };
    const simulation = new Simulation({ min: 1, max: 2, target: 1, ladder }, createRandom(1));
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
