// Sizes of disks: enforced by images where the host has them, otherwise by stopping machines that exceed theirs.

import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { inspectHost } from '#cloud/drivers/sandbox/host.ts';
import { machineDirectory } from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { createFixture, type Fixture, noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { until } from '#test/support/until.ts';

describe('the disk of a sandbox', { skip: noSsh, timeout: 120_000 }, () => {
  async function withFixture(
    options: Parameters<typeof createFixture>[0],
    check: (fixture: Fixture) => Promise<void>,
  ) {
    const fixture = await createFixture(options);
    try {
      await check(fixture);
    } finally {
      await fixture.close();
    }
  }

  test('an image is full at its size and keeps its files over a restart', async (context) => {
    await withFixture({}, async ({ client, dataDir, driver, launch }) => {
      const host = await inspectHost(dataDir, { isolation: 'auto', nested: false });
      if (!host.diskImages) return context.skip('no disk images on this host');
      const machine = await launch({ storageGib: 1 });
      const fill = await client.ssh(machine, 'echo kept > ~/file; fallocate -l 2G ~/big');
      assert.match(fill.stderr, /No space left on device/);
      const image = machineDirectory(dataDir, machine.id).diskImage;
      assert.equal(statSync(image).size, 1024 ** 3);
      await client.ssh(machine, 'rm ~/big; sync');
      await driver.restart(machine.spec);
      const { stdout } = await client.ssh(machine, 'cat ~/file; stat -c %U ~/file ~');
      assert.equal(stdout, 'kept\nubuntu\nubuntu\n');
      return undefined;
    });
  });

  test('a link in place of /home does not lead the measurement to the host', async (context) => {
    await withFixture({}, async ({ client, dataDir, driver, launch }) => {
      const host = await inspectHost(dataDir, { isolation: 'auto', nested: false });
      if (!host.diskImages) return context.skip('no disk images on this host');
      const machine = await launch({ storageGib: 1 });
      const { stderr } = await client.ssh(
        machine,
        'sudo sh -c "mv /home /moved && ln -s /proc /home"',
      );
      assert.equal(stderr, '');
      const { diskBytes } = (await driver.stats(machine.id)) ?? assert.fail('it does not run');
      // If the link were followed on the host, the size of /proc would be 0.
      assert.ok('value' in diskBytes && diskBytes.value > 0);
      return undefined;
    });
  });

  test('a disk made as a directory keeps working on a host with images', async () => {
    await withFixture({ disks: 'directories' }, async ({ client, dataDir, driver, launch }) => {
      const machine = await launch();
      await client.ssh(machine, 'echo kept > ~/file');
      await driver.close();
      const next = await createSandboxDriver({ dataDir });
      try {
        await next.restart(machine.spec);
        assert.equal((await client.ssh(machine, 'cat ~/file')).stdout, 'kept\n');
        assert(!existsSync(machineDirectory(dataDir, machine.id).diskImage));
      } finally {
        await next.close();
      }
    });
  });

  test('without images, a machine that exceeds its size is stopped and says why', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] });
    await withFixture({ disks: 'directories' }, async ({ client, driver, launch }) => {
      const [small, large] = await Promise.all([
        launch({ storageGib: 0.02 }),
        launch({ storageGib: 1 }),
      ]);
      // In a directory that the tenant has closed, so that it is hard to count.
      const write = 'mkdir ~/shut; head -c 50000000 /dev/zero > ~/shut/big; chmod 000 ~/shut';
      await Promise.all([client.ssh(small, write), client.ssh(large, write)]);
      context.mock.timers.tick(60_000);
      await until(
        'it is stopped',
        async () => (await driver.inspect(small.id)).state === 'stopped',
      );
      const state = await driver.inspect(small.id);
      assert(state.state === 'stopped');
      assert.match(state.reason, /^Its disk has 0.02 GiB and it used 0.05 GiB. Restart it/);
      assert.equal((await driver.inspect(large.id)).state, 'running');
      await driver.restart(small.spec);
      assert.equal(
        (await client.ssh(small, 'chmod 700 ~/shut; rm -r ~/shut; echo ok')).stdout,
        'ok\n',
      );
      context.mock.timers.tick(60_000);
      assert.equal((await driver.inspect(small.id)).state, 'running');
    });
  });
});
