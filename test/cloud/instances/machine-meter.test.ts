// Measurements of machines: shared by their viewers, and few at once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MachineStats } from '#cloud/drivers/driver.ts';
import { createScriptedDriver } from '#cloud/drivers/scripted.ts';
import { createMachineMeter } from '#cloud/instances/machine-meter.ts';
import { createHandClock } from '#test/support/clock.ts';

const none = { unavailable: 'not measured' };
const stats: MachineStats = {
  cpuMs: none,
  memoryBytes: { value: 1 },
  diskBytes: none,
  network: none,
  gpus: none,
};

describe('machines are measured', () => {
  test('once for all who look, at most four of a host at a time', async () => {
    const calls: string[] = [];
    const held = Promise.withResolvers<MachineStats | undefined>();
    const driver = {
      ...createScriptedDriver(),
      stats: (id: string) => {
        calls.push(id);
        return held.promise;
      },
    };
    const meter = createMachineMeter(createHandClock(5), { driverOf: () => driver });
    const ids = [...'0123456789abcdef'];
    const views = [...ids, ...ids].map((id) => meter('host', id));
    await new Promise(setImmediate);
    assert.deepEqual(calls, ids.slice(0, 4));
    held.resolve(stats);
    const measured = await Promise.all(views);
    assert.equal(calls.length, ids.length);
    assert.deepEqual(measured[0], { at: 5, ...stats });
  });

  test('only if they run on a host that answers', async () => {
    const driver = createScriptedDriver();
    const clock = createHandClock(0);
    const known = createMachineMeter(clock, { driverOf: () => driver });
    await assert.rejects(known('host', 'a'), /does not run now/);
    const unknown = createMachineMeter(clock, { driverOf: () => undefined });
    await assert.rejects(unknown('host', 'a'), /host does not answer/);
  });
});
