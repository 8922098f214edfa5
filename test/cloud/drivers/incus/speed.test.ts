// How long machines of the incus driver take from the launch to an answering ssh, with the small image.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createFixture, type Fixture } from '#test/support/cloud/incus-fixture.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';

describe('incus driver, speed', { skip: noLxd, timeout: 120_000 }, () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await createFixture();
  });
  after(() => fixture.close());

  /** From the launch until each has run a command. */
  async function time(count: number): Promise<number> {
    fixture.client.forgetHosts();
    const begun = performance.now();
    const machines = await Promise.all(
      Array.from({ length: count }, async () => {
        const machine = await fixture.launch();
        assert.equal(await fixture.output(machine, 'hostname'), machine.spec.hostname);
        return machine;
      }),
    );
    const tookMs = performance.now() - begun;
    await Promise.all(machines.map(({ id }) => fixture.driver.terminate(id)));
    return tookMs;
  }

  /** Other work on this computer must not fail it: the better of two. */
  async function best(count: number, limitMs: number): Promise<number> {
    const first = await time(count);
    return first <= limitMs ? first : Math.min(first, await time(count));
  }

  test('a machine answers ssh within four seconds of its launch', async (context) => {
    const tookMs = await best(1, 4_000);
    context.diagnostic(`${Math.round(tookMs)} ms`);
    assert.ok(tookMs <= 4_000, `${tookMs} ms`);
  });

  test('eight machines launched at once answer ssh within ten seconds', async (context) => {
    const tookMs = await best(8, 10_000);
    context.diagnostic(`${Math.round(tookMs)} ms`);
    assert.ok(tookMs <= 10_000, `${tookMs} ms`);
  });
});
