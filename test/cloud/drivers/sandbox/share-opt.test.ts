// The host's /opt inside machines, by the setting cloud.share_opt.

import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createFixture, noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';

const skip = noSsh || (!isRoot && 'needs root, to write to /opt');

describe("the host's /opt", { skip, timeout: 120_000 }, () => {
  let folder: string;

  before(async () => {
    await mkdir('/opt', { recursive: true });
    folder = await mkdtemp('/opt/millrace-test-');
    await writeFile(path.join(folder, 'tool'), 'from the host', { mode: 0o644 });
    await writeFile(path.join(folder, 'secret'), 'secret', { mode: 0o600 });
    await chmod(folder, 0o755);
  });
  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  test('is read-only in machines, without the data directory and private files', async (context) => {
    const dataDir = path.join(folder, 'data');
    const fixture = await createFixture({ shareOpt: true, dataDir });
    context.after(() => fixture.close());
    const machine = await fixture.launch();
    const inside = (command: string) => fixture.client.ssh(machine, command);
    assert.equal((await inside(`cat ${folder}/tool`)).stdout, 'from the host');
    for (const user of ['', 'sudo ']) {
      assert.match((await inside(`${user}touch ${folder}/new`)).stderr, /Read-only file system/);
      assert.match((await inside(`${user}cat ${folder}/secret`)).stderr, /Permission denied/);
    }
    // Covered, rather than protected by its mode alone.
    assert.equal((await inside(`stat -f -c %T ${dataDir}`)).stdout, 'tmpfs\n');
    assert.notEqual((await inside('sudo mount -o remount,bind,rw /opt')).code, 0);
  });

  test('is not visible by default, also in a machine that had it before', async (context) => {
    const shared = await createFixture({ shareOpt: true });
    const machine = await shared.launch();
    await shared.driver.close();
    const fixture = await createFixture({ dataDir: shared.dataDir });
    context.after(() => fixture.close());
    await fixture.driver.restart(machine.spec);
    const answer = await shared.client.ssh(
      machine,
      `cat ${folder}/tool; sudo touch /opt/own; ls /opt`,
    );
    assert.equal(answer.stdout, 'own\n');
    shared.client.close();
  });
});
