// The user ids of machines, as root: each running machine has its own, while disks and shared filesystems keep
// one range.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  chooseIdBase,
  diskIdBase,
  findRunningBases,
  idCount,
} from '#cloud/drivers/sandbox/disk/id-ranges.ts';
import { inspectHost } from '#cloud/drivers/sandbox/host.ts';
import {
  findRecord,
  findRecordedProcess,
  machineDirectory,
  writeRecord,
} from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { createFixture, type Fixture, noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';

test('a range is derived from the id, and taken ones are skipped', () => {
  const id = `0000000${'f'.repeat(25)}`;
  const first = chooseIdBase(id, () => false);
  const second = chooseIdBase(id, (base) => base === first);
  assert.equal(second - first, idCount);
  assert(first > diskIdBase + idCount && first + 4000 * idCount < 2 ** 31);
  assert.throws(() => chooseIdBase(id, () => true), /All 4000 id ranges/);
});

describe('ids of running machines', { skip: noSsh || !isRoot, timeout: 300_000 }, () => {
  let fixture: Fixture;
  let canMap = false;
  before(async () => {
    fixture = await createFixture();
    const host = await inspectHost(fixture.dataDir, { isolation: 'auto', nested: false });
    canMap = host.mappedBind !== null;
  });
  after(() => fixture.close());

  async function baseOf(id: string): Promise<number> {
    const process = await findRecordedProcess(machineDirectory(fixture.dataDir, id));
    const [inside, base, count] = readFileSync(`/proc/${process!.init.pid}/uid_map`, 'utf8')
      .trim()
      .split(/\s+/)
      .map(Number);
    assert.deepEqual([inside, count], [0, idCount]);
    return base!;
  }

  test('each machine has its own, and shares files by name with others', async (context) => {
    if (!canMap) return context.skip('this file system has no id-mapped mounts');
    // A directory, as an earlier version made it, shows the ids on disk.
    const folder = path.join(fixture.dataDir, 'filesystems', 'team');
    mkdirSync(folder);
    chownSync(folder, diskIdBase + 1000, diskIdBase + 1000);
    await fixture.driver.createFilesystem('team');
    const filesystems = [{ id: 'team', mountPoint: '/lambda/nfs/team' }];
    const [first, second] = await Promise.all([
      fixture.launch({ filesystems }),
      fixture.launch({ filesystems }),
    ]);
    const bases = await Promise.all([baseOf(first.id), baseOf(second.id)]);
    assert(Math.abs(bases[0]! - bases[1]!) >= idCount);
    assert(!bases.includes(diskIdBase));
    await fixture.client.ssh(first, 'echo one > /lambda/nfs/team/file');
    const { stdout } = await fixture.client.ssh(
      second,
      'echo two >> /lambda/nfs/team/file; stat -c %U /lambda/nfs/team/file; cat /lambda/nfs/team/file',
    );
    assert.equal(stdout, 'ubuntu\none\ntwo\n');
    assert.equal(statSync(path.join(folder, 'file')).uid, diskIdBase + 1000);
  });

  test('a machine of an earlier version gets its own at its next start and keeps its files', async (context) => {
    if (!canMap) return context.skip('this file system has no id-mapped mounts');
    const machine = await fixture.launch();
    const setUp = 'echo kept > ~/file; sudo sh -c "echo kept > /etc/file; chmod 600 /etc/file"';
    await fixture.client.ssh(machine, setUp);
    const directory = machineDirectory(fixture.dataDir, machine.id);
    const { idBase: _, ...earlier } = (await findRecord(directory))!;
    await writeRecord(directory, earlier);
    await fixture.driver.restart(machine.spec);
    assert.notEqual(await baseOf(machine.id), diskIdBase);
    const { stdout } = await fixture.client.ssh(
      machine,
      'stat -c %U ~/file; sudo stat -c %U /etc/file; echo more >> ~/file && cat ~/file',
    );
    assert.equal(stdout, 'ubuntu\nroot\nkept\nmore\n');
  });

  test('a range is not reused while a process of its earlier owner runs', async () => {
    const base = chooseIdBase('12345678', () => false);
    const child = spawn('sleep', ['60'], { uid: base + 1000, gid: base + 1000 });
    try {
      await once(child, 'spawn');
      assert((await findRunningBases()).has(base));
    } finally {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    assert(!(await findRunningBases()).has(base));
  });
});
