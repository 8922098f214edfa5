// The disk of the host: whatever tenants write, the server keeps its reserve and other machines keep their disks.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { diskIdBase } from '#cloud/drivers/sandbox/disk/id-ranges.ts';
import { inspectHost } from '#cloud/drivers/sandbox/host.ts';
import { machineDirectory } from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { createSandboxDriver, type SandboxOptions } from '#cloud/drivers/sandbox/sandbox.ts';
import { createFixture, noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { mountSmallDisk, noSmallDisk } from '#test/support/small-disk.ts';
import { until } from '#test/support/until.ts';

const reserveGib = 0.25;
const writeAll = (folder: string) =>
  `cat /dev/zero > ${folder}/big; sync; stat -c %s ${folder}/big`;

/** A driver on a disk of 1 GiB, a quarter of which is reserved. Undefined if this host has no disk images. */
async function createSmallHost(context: TestContext, options: Partial<SandboxOptions> = {}) {
  const disk = mountSmallDisk(context, 1024, 'ext4');
  const host = await inspectHost(disk.path, { isolation: 'auto', nested: false });
  if (!host.diskImages) {
    context.skip('no disk images on this host');
    return undefined;
  }
  const small = { dataDir: path.join(disk.path, 'data'), diskReserveGib: reserveGib, ...options };
  const fixture = await createFixture(small);
  disk.beforeUnmount(() => fixture.close());
  const freeGib = () => {
    const { bavail, bsize } = statfsSync(disk.path);
    return (bavail * bsize) / 2 ** 30;
  };
  return { ...fixture, disk, freeGib };
}

const isWhole = (file: string) => statSync(file).blocks * 512 >= statSync(file).size;

describe('the disk of the host', { skip: noSsh || noSmallDisk, timeout: 120_000 }, () => {
  test('machines that fill their disks leave the reserve, and what does not fit is refused', async (context) => {
    const host = await createSmallHost(context);
    if (!host) return;
    const first = await host.launch({ storageGib: 0.3 });
    const second = await host.launch({ storageGib: 0.2 });
    const third = host.spec({ storageGib: 0.2 });
    await assert.rejects(host.driver.launch(third), {
      failure: 'unavailable',
      message: /^The disk of this host is almost full: 0.20 GiB do not fit into the 0.\d\d GiB/,
    });
    await host.client.ssh(first, 'echo kept > ~/file; sync');
    for (const machine of [first, second]) {
      const { stdout, stderr } = await host.client.ssh(machine, writeAll('~'));
      assert.match(stderr, /No space left on device/);
      assert(Number(stdout) > 0.05 * 2 ** 30);
    }
    assert(host.freeGib() >= reserveGib, `${host.freeGib()} GiB are free`);
    await host.driver.restart(first.spec);
    assert.equal((await host.client.ssh(first, 'rm ~/big; cat ~/file')).stdout, 'kept\n');
    assert(isWhole(machineDirectory(host.dataDir, first.id).diskImage));
    // What is refused leaves no blocks behind.
    await host.driver.terminate(second.id);
    await host.driver.launch(third);
  });

  test('a filesystem has a size, which all its machines share', async (context) => {
    const host = await createSmallHost(context, { filesystemGib: 0.25 });
    if (!host) return;
    await Promise.all([host.driver.createFilesystem('team'), host.driver.createFilesystem('team')]);
    await assert.rejects(
      host.driver.createFilesystem('other').then(() => host.driver.createFilesystem('third')),
      {
        failure: 'unavailable',
      },
    );
    await host.driver.deleteFilesystem('other');
    const filesystems = [{ id: 'team', mountPoint: '/lambda/nfs/team' }];
    const machine = await host.launch({ storageGib: 0.15, filesystems });
    assert.equal((await host.client.ssh(machine, 'ls -A /lambda/nfs/team')).stdout, '');
    const { stdout, stderr } = await host.client.ssh(machine, writeAll('/lambda/nfs/team'));
    assert.match(stderr, /No space left on device/);
    const used = await host.driver.filesystemUsage('team');
    assert(used !== null && used >= Number(stdout) && used < 0.25 * 2 ** 30);
    assert(host.freeGib() >= reserveGib, `${host.freeGib()} GiB are free`);
  });

  test('types are a share of the disk that does not shrink because machines have theirs', async (context) => {
    const host = await createSmallHost(context, { diskReserveGib: -8 });
    if (!host) return;
    const before = await host.driver.describe();
    await host.launch({ storageGib: 0.5 });
    const after = await host.driver.describe();
    assert.deepEqual([before.storageGib, after.storageGib], [4, 4]);
  });

  test('a type keeps its disk when others fill the host, also in the next server, unless the operator sets it', async (context) => {
    const options = { diskReserveGib: -2 };
    const host = await createSmallHost(context, options);
    if (!host) return;
    const before = (await host.driver.describe()).storageGib;
    execFileSync('fallocate', ['-l', '700M', path.join(host.disk.path, 'big')]);
    assert.equal((await host.driver.describe()).storageGib, before);
    await host.driver.close();
    for (const [settings, expected] of [
      [{}, before],
      [{ machinesDiskGib: 7 }, 7],
    ] as const) {
      const next = await createSandboxDriver({ dataDir: host.dataDir, ...options, ...settings });
      assert.equal((await next.describe()).storageGib, expected);
      await next.close();
    }
  });

  test('a sparse image of an earlier version gets its blocks at the start of the server', async (context) => {
    const host = await createSmallHost(context);
    if (!host) return;
    const machine = await host.launch({ storageGib: 0.3 });
    const image = machineDirectory(host.dataDir, machine.id).diskImage;
    await host.client.ssh(machine, 'echo kept > ~/file; sync');
    execFileSync('fallocate', ['--dig-holes', image]);
    assert(!isWhole(image));
    // Its blocks are promised all the same.
    await assert.rejects(host.driver.launch(host.spec({ storageGib: 0.4 })), /almost full/);
    await host.driver.close();
    const next = await createSandboxDriver({ dataDir: host.dataDir, diskReserveGib: reserveGib });
    try {
      assert(isWhole(image));
      await next.restart(machine.spec);
      assert.equal((await host.client.ssh(machine, 'cat ~/file')).stdout, 'kept\n');
    } finally {
      await next.close();
    }
  });

  test('below the reserve, only machines without a size of their own are stopped and say why', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] });
    const host = await createSmallHost(context);
    if (!host) return;
    const folder = path.join(host.dataDir, 'filesystems', 'old');
    mkdirSync(folder);
    chownSync(folder, diskIdBase + 1000, diskIdBase + 1000);
    const filesystems = [{ id: 'old', mountPoint: '/lambda/nfs/old' }];
    const bounded = await host.launch({ storageGib: 0.15 });
    const unbounded = await host.launch({ storageGib: 0.15, filesystems });
    const stateOf = async (id: string) => (await host.driver.inspect(id)).state;
    await host.client.ssh(unbounded, 'fallocate -l 500M /lambda/nfs/old/big');
    context.mock.timers.tick(1000);
    await until('it is stopped', async () => (await stateOf(unbounded.id)) === 'stopped');
    const state = await host.driver.inspect(unbounded.id);
    assert(state.state === 'stopped');
    assert.match(state.reason, /^The disk of its host is almost full, .* Restart it, and delete/);
    assert.equal(await stateOf(bounded.id), 'running');
    await host.driver.restart(unbounded.spec);
    context.mock.timers.tick(1000);
    await host.client.ssh(unbounded, 'rm /lambda/nfs/old/big; sync');
    assert.equal(await stateOf(unbounded.id), 'running');
  });
});
