// Real cloud-init in a real machine. Needs an image that has it: the path of a unified image tarball in
// MILLRACE_TEST_CLOUD_IMAGE.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createFixture, type Fixture } from '#test/support/cloud/incus-fixture.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { until } from '#test/support/until.ts';

const image = process.env.MILLRACE_TEST_CLOUD_IMAGE;
const skip = noLxd || (image === undefined && 'MILLRACE_TEST_CLOUD_IMAGE names no image');

describe('incus driver, cloud-init', { skip, timeout: 180_000 }, () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await createFixture();
    await fixture.lxd.importImage(image!, 'cloud');
  });
  after(async () => {
    for (const id of await fixture.driver.list()) await fixture.driver.terminate(id);
    await fixture.close();
  });

  test('user data reaches cloud-init unchanged, beside our name, keys and address', async () => {
    const userData = `#cloud-config
locale: false
ssh_authorized_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOJnMnx3ht3NE+n5IuVRnClzrQbTe1w6oyVeS3fFMC0I theirs']
write_files:
- path: /etc/greeting
  content: hello
runcmd:
- echo "counted by user data" >/dev/console
- echo x >>/home/ubuntu/count
`;
    const id = 'c'.repeat(32);
    await fixture.driver.createFilesystem(id);
    const filesystems = [{ id, mountPoint: '/lambda/nfs/data' }];
    const { last } = fixture.driver.addressRange();
    const machine = await fixture.launch({ image: 'cloud', userData, filesystems, ip: last });
    const { output } = fixture;
    // Both keys let in: ours, which is used here, and the one in the user's own data.
    await until(
      'our key lets us in',
      async () => (await fixture.client.ssh(machine, 'true')).code === 0,
      60_000,
    );
    assert.match(await output(machine, 'cat .ssh/authorized_keys'), /theirs/);
    await until(
      'cloud-init is done',
      async () =>
        (await fixture.client.ssh(machine, 'test -e /run/cloud-init/result.json')).code === 0,
      60_000,
    );
    assert.equal(await output(machine, 'hostname'), machine.spec.hostname);
    assert.equal(await output(machine, 'id -un; sudo id -u'), 'ubuntu\n0');
    assert.equal(await output(machine, 'cat /etc/greeting'), 'hello');
    const sent = await output(machine, 'sudo cat /var/lib/cloud/instance/user-data.txt');
    assert.equal(sent, userData.trim());
    await output(machine, 'echo note > /lambda/nfs/data/note');
    assert.match(await fixture.driver.bootLog(machine.id), /counted by user data/);
    await fixture.driver.restart(machine.spec);
    const again = await fixture.running(machine.id);
    assert.equal(again.ip, last);
    assert.equal(await output(again, 'wc -l < count'), '1');
    await fixture.driver.terminate(machine.id);
    await fixture.driver.deleteFilesystem(id);
  });
});
