// What failing requests cost: each doubts that its replica still runs, and the server looks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LiveDeployments, type LiveDeploymentsParts } from '#deployments/life/live-deployments.ts';
import { createHandClock } from '#test/support/clock.ts';

test('a flood of failing requests costs a few looks a second for each model', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let looks = 0;
  const registry = {
    onSuspect: (_model: string) => {},
    setDeployed() {
      looks += 1;
      return false;
    },
  };
  const live = new LiveDeployments({
    clock: createHandClock(),
    registry,
    router: {},
    runs: { isDue: false },
    servers: null,
  } as unknown as LiveDeploymentsParts);
  const doubt = (count: number) => {
    for (let request = 0; request < count; request++) registry.onSuspect('a');
    return looks;
  };
  assert.equal(doubt(1_000), 1);
  registry.onSuspect('b');
  assert.equal(looks, 2);
  // What failed meanwhile is looked at once more.
  t.mock.timers.tick(250);
  assert.equal(looks, 3);
  assert.equal(doubt(1_000), 3);
  t.mock.timers.tick(250);
  assert.equal(looks, 4);
  t.mock.timers.tick(250);
  assert.equal(doubt(1), 5);
  live.tick();
  assert.equal(looks, 6);
});
