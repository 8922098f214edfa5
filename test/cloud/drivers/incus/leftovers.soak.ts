// The harness itself: what a test run that was killed leaves behind, its daemon and machines included, is
// gone after the sweep that the next run begins with.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { bridgeOf, processesOf, slotFolder, subnetOf, sweep } from '#test/support/lxd/lxd-slot.ts';

describe('a killed test run', { skip: noLxd, timeout: 60_000 }, () => {
  test('its processes, interfaces, routes and folders are removed by the next run', async () => {
    const fixture = fileURLToPath(
      new URL('../../../support/cloud/incus-fixture.ts', import.meta.url),
    );
    const program = `const { createFixture } = await import(${JSON.stringify(fixture)});
      const fixture = await createFixture();
      await fixture.launch();
      console.log(fixture.lxd.folder);
      setInterval(() => {}, 1000);`;
    const argv = ['--input-type=module', '--eval', program];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [folder] = await once(createInterface({ input: child.stdout }), 'line');
    const slot = Number(/\d+$/.exec(folder)?.[0]);
    assert.equal(folder, slotFolder(slot));
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    assert.ok(processesOf(folder).length > 3);
    await sweep(slot);
    assert.deepEqual(processesOf(folder), []);
    assert.ok(!existsSync(folder) && !existsSync(`${folder}.lock`));
    const routes = execFileSync('ip', ['route']).toString();
    assert.ok(!routes.includes(bridgeOf(slot)) && !routes.includes(subnetOf(slot)), routes);
    assert.ok(
      !execFileSync('ip', ['-br', 'link'])
        .toString()
        .includes(`${bridgeOf(slot)} `),
    );
  });
});
