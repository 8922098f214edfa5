// What the incus driver survives on a real daemon: a crash of the daemon, lost events and operations that fail
// after they were accepted. Idle machines cost the daemon no requests.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DriverError } from '#cloud/drivers/driver.ts';
import { instanceName } from '#cloud/drivers/incus/machine/instance.ts';
import { createFixture, type Fixture } from '#test/support/cloud/incus-fixture.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { startUnixProxy, type UnixProxy } from '#test/support/unix-proxy.ts';
import { until } from '#test/support/until.ts';

describe('incus driver, faults', { skip: noLxd, timeout: 390_000 }, () => {
  let fixture: Fixture;
  let proxy: UnixProxy;
  before(async () => {
    fixture = await createFixture();
    proxy = await startUnixProxy(fixture.lxd.socket);
  });
  after(async () => {
    await fixture.close();
    await proxy.close();
  });

  const throughProxy = () => fixture.open({ endpoint: { url: `unix:${proxy.path}` } });

  test('a launch cut off by the daemon’s end is reported, cleaned up and repeated', async () => {
    const { lxd, spec } = fixture;
    const driver = await throughProxy();
    const wanted = spec();
    const launched = driver.launch(wanted);
    const failed = assert.rejects(launched, (error) => {
      assert.ok(error instanceof DriverError);
      assert.equal(error.failure, 'unavailable');
      return true;
    });
    // The create was accepted and is waited for: its image is being unpacked.
    await until('it is being made', () => proxy.requests.some((line) => line.includes('/wait')));
    await lxd.kill();
    await failed.finally(() => lxd.start());
    assert.match((await driver.inspect(wanted.id)).state, /stopped|absent/);
    await driver.launch(wanted);
    const state = await fixture.running(wanted.id);
    assert.equal(await fixture.output(state, 'hostname'), wanted.hostname);
    assert.deepEqual(await driver.list(), [wanted.id]);
    await driver.terminate(wanted.id);
  });

  test('machines outlive the daemon and are recognised once it is back', async () => {
    const { driver, lxd } = fixture;
    const machine = await fixture.launch();
    await lxd.kill();
    assert.equal(await fixture.output(machine, 'echo alive'), 'alive');
    await assert.rejects(driver.inspect(machine.id), { failure: 'unavailable' });
    await lxd.start();
    const { id, spec: _, ...state } = machine;
    assert.deepEqual(await fixture.running(id), state);
    await driver.terminate(id);
  });

  test('without events every inspection asks the daemon; once they are back, none does', async () => {
    const { lxd } = fixture;
    const driver = await throughProxy();
    const seen: (string | null)[] = [];
    const stop = driver.watch((id) => void seen.push(id));
    const machine = await fixture.launch({}, driver);
    const path = `/1.0/instances/${instanceName(machine.id)}/state`;
    // A list that differs is also reported as null, so only what is reported from here on counts.
    seen.length = 0;
    proxy.refuseWebSockets(true);
    await until('the loss is reported', () => seen.includes(null));
    await lxd.request('PUT', path, { action: 'stop', force: true, timeout: -1 });
    assert.equal((await driver.inspect(machine.id)).state, 'stopped');
    await lxd.request('PUT', path, { action: 'start', timeout: -1 });
    await fixture.running(machine.id, driver);
    proxy.refuseWebSockets(false);
    // The stream reconnects after a pause of up to ten seconds, and then lists all machines.
    await until(
      'the daemon is not asked',
      async () => {
        const before = proxy.requests.length;
        await driver.inspect(machine.id);
        return proxy.requests.length === before;
      },
      90_000,
    );
    seen.length = 0;
    await lxd.request('PUT', path, { action: 'stop', force: true, timeout: -1 });
    // An event about something else may name the machine first.
    await until(
      'the stop is reported and seen',
      async () =>
        seen.includes(machine.id) && (await driver.inspect(machine.id)).state === 'stopped',
    );
    stop();
    await driver.restart(machine.spec);
    await fixture.running(machine.id, driver);
    await driver.terminate(machine.id);
  });

  test('a machine that shuts itself down is stopped, and a restart brings it back', async () => {
    const { driver } = fixture;
    const machine = await fixture.launch();
    await fixture.output(machine, 'touch kept');
    // The connection may end with the machine, so the exit status says nothing.
    await fixture.client.ssh(machine, 'setsid sudo kill -PWR 1 >/dev/null 2>&1 </dev/null &');
    await until(
      'it is stopped',
      async () => (await driver.inspect(machine.id)).state === 'stopped',
    );
    await driver.restart(machine.spec);
    assert.equal(await fixture.output(await fixture.running(machine.id), 'ls'), 'kept');
    await driver.terminate(machine.id);
  });

  test('a machine that ignores a restart is power-cycled', async () => {
    const { driver } = fixture;
    const machine = await fixture.launch();
    const path = `/1.0/instances/${instanceName(machine.id)}/state`;
    const init = () => fixture.lxd.request<{ pid: number }>('GET', path);
    const { pid } = await init();
    // A stopped init can't shut down.
    process.kill(pid, 'SIGSTOP');
    const again = await fixture.open({ gracefulSeconds: 1 });
    await again.restart(machine.spec);
    await fixture.running(machine.id, again);
    assert.notEqual((await init()).pid, pid);
    await driver.terminate(machine.id);
  });

  test('an operation that fails after it was accepted is reported with its reason, and leaves nothing behind', async () => {
    const { driver, spec } = fixture;
    const noSuchGpu = spec({ gpus: ['0000:81:00.0'] });
    await assert.rejects(driver.launch(noSuchGpu), { failure: 'impossible' });
    const noSuchImage = spec({ image: 'no-such-image' });
    await assert.rejects(driver.launch(noSuchImage), { failure: 'impossible' });
    for (const { id } of [noSuchGpu, noSuchImage]) {
      await driver.terminate(id);
      assert.deepEqual(await driver.inspect(id), { state: 'absent' });
    }
    const first = await fixture.launch();
    const clash = spec({ ip: first.ip });
    await assert.rejects(driver.launch(clash), { failure: 'unavailable' });
    await driver.terminate(clash.id);
    await driver.terminate(first.id);
  });

  test('machines of another installation are ignored', async () => {
    const { driver } = fixture;
    const other = await fixture.open({ owner: 'another-owner' });
    const machine = await fixture.launch();
    assert.deepEqual(await other.list(), []);
    assert.deepEqual(await other.inspect(machine.id), { state: 'absent' });
    await other.terminate(machine.id);
    assert.equal((await driver.inspect(machine.id)).state, 'running');
    await driver.terminate(machine.id);
  });

  test('inspections of idle machines are served from memory', async (t) => {
    // Its own proxy, because drivers of other tests also send requests now and then.
    const { path, requests, close } = await startUnixProxy(fixture.lxd.socket, 'idle');
    t.after(close);
    const endpoint = { url: `unix:${path}` };
    const driver = await fixture.open({ endpoint, resyncMs: 3_600_000 });
    const machines = await Promise.all([fixture.launch({}, driver), fixture.launch({}, driver)]);
    // Repeated, because events of the launches may still arrive.
    await until(
      'a hundred inspections send no request',
      async () => {
        const before = requests.length;
        for (let round = 0; round < 100; round++) {
          for (const { id } of machines) assert.equal((await driver.inspect(id)).state, 'running');
        }
        return requests.length === before;
      },
      90_000,
    );
    for (const { id } of machines) await driver.terminate(id);
  });
});
