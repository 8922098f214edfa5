// What machines of the incus driver are given, seen from inside them on a real daemon.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { InboundRule, Terminal } from '#cloud/drivers/driver.ts';
import { createDaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import {
  architecture,
  buildHostImage,
  smallImage,
} from '#cloud/drivers/incus/images/image-recipe.ts';
import { runInside } from '#cloud/drivers/incus/machine/command.ts';
import { instanceName } from '#cloud/drivers/incus/machine/instance.ts';
import { openNetworkAcl } from '#cloud/drivers/incus/network/firewall.ts';
import { createFixture, type Fixture, type Running } from '#test/support/cloud/incus-fixture.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { until } from '#test/support/until.ts';

const everything: InboundRule = {
  protocol: 'all',
  portRange: null,
  sourceNetwork: '0.0.0.0/0',
};

type Launched = Awaited<ReturnType<Fixture['launch']>>;

describe('machines of the incus driver', { skip: noLxd, timeout: 600_000 }, () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await createFixture();
  });
  after(async () => {
    for (const id of await fixture.driver.list()) await fixture.driver.terminate(id);
    await fixture.close();
  });

  test('a machine has the address chosen for it, its name, a real sudo and its limits', async () => {
    const { driver, output } = fixture;
    const { subnet, gateway, last } = driver.addressRange();
    assert.equal(subnet, `${fixture.lxd.gateway}/27`);
    assert.equal(gateway, fixture.lxd.gateway);
    const machine = await fixture.launch({ ip: last, vcpus: 1, memoryGib: 2 });
    assert.equal(machine.ip, last);
    assert.equal(await output(machine, 'hostname'), machine.spec.hostname);
    assert.match(await output(machine, 'ip -4 addr show eth0'), new RegExp(`inet ${last}/27`));
    assert.equal(await output(machine, 'sudo id -u'), '0');
    assert.equal(await output(machine, 'nproc'), '1');
    assert.equal(await memoryLimit(fixture, machine.id), 2 * 1024 ** 3);
    await driver.terminate(machine.id);
  });

  test('an address outside the network, or the gateway’s own, is refused for good', async () => {
    for (const ip of ['127.77.1.1', fixture.lxd.gateway]) {
      const wanted = fixture.spec({ ip });
      await assert.rejects(fixture.driver.launch(wanted), { failure: 'impossible' });
    }
  });

  test('on an unmanaged bridge a machine sets its own address, without DHCP', async () => {
    const { network, ...addresses } = await fixture.lxd.addPlainBridge();
    await assert.rejects(fixture.open({ network }), /which addresses/);
    const driver = await fixture.open({ network, addresses });
    const machine = await fixture.launch({ ip: driver.addressRange().last }, driver);
    assert.equal(machine.ip, driver.addressRange().last);
    assert.equal(await fixture.output(machine, 'hostname'), machine.spec.hostname);
    assert.match((await driver.describe()).network, /not enforced/);
    await driver.terminate(machine.id);
  });

  test('disks and filesystems are limited and measured on a pool with quotas', async () => {
    const pool = await fixture.lxd.addBtrfsPool();
    const driver = await fixture.open({ pool });
    const id = 'f'.repeat(32);
    await driver.createFilesystem(id);
    const filesystems = [{ id, mountPoint: '/lambda/nfs/data' }];
    const machine = await fixture.launch({ storageGib: 1, filesystems }, driver);
    await fixture.output(
      machine,
      'dd if=/dev/urandom of=/lambda/nfs/data/file bs=1M count=8; sync',
    );
    const used = await driver.filesystemUsage(id);
    assert.ok(used !== null && used >= 8 * 1024 ** 2 && used < 64 * 1024 ** 2, `${used}`);
    const fill = await fixture.client.ssh(
      machine,
      'dd if=/dev/zero of=big bs=1M count=1100 && sync',
    );
    assert.notEqual(fill.code, 0);
    await assert.rejects(driver.deleteFilesystem(id), /use/);
    await driver.terminate(machine.id);
    await driver.deleteFilesystem(id);
    await driver.deleteFilesystem(id);
    assert.equal(await driver.filesystemUsage(id), null);
  });

  test('a directory pool reports that it can’t measure a filesystem', async () => {
    const id = 'e'.repeat(32);
    await fixture.driver.createFilesystem(id);
    assert.equal(await fixture.driver.filesystemUsage(id), null);
    await fixture.driver.deleteFilesystem(id);
  });

  test('folders of mounted storage serve as filesystems, with the same owner inside and outside', async () => {
    const storage = `${fixture.lxd.folder}/storage`;
    mkdirSync(storage);
    const driver = await fixture.open({ hostPaths: { onHosts: storage, here: storage } });
    const id = 'd'.repeat(32);
    await driver.createFilesystem(id);
    const filesystems = [{ id, mountPoint: '/lambda/nfs/data' }];
    const [first, second] = await Promise.all([
      fixture.launch({ filesystems }, driver),
      fixture.launch({ filesystems }, driver),
    ]);
    await fixture.output(first, 'echo one > /lambda/nfs/data/note');
    assert.equal(await fixture.output(second, 'cat /lambda/nfs/data/note'), 'one');
    const { uid, gid } = statSync(`${storage}/millrace-${id}/note`);
    assert.deepEqual([uid, gid], [1000, 1000]);
    assert.ok((await driver.filesystemUsage(id))! > 0);
    await Promise.all([driver.terminate(first.id), driver.terminate(second.id)]);
    await driver.deleteFilesystem(id);
    await assert.rejects(
      (
        await fixture.open({ hostPaths: { onHosts: '/x', here: `${storage}/gone` } })
      ).createFilesystem(id),
      /not mounted/,
    );
  });

  test('inbound rules are enforced, and changed while the machine runs', async () => {
    const { driver } = fixture;
    const web: InboundRule = {
      protocol: 'tcp',
      portRange: [8080, 8081],
      sourceNetwork: '0.0.0.0/0',
    };
    const machine = await fixture.launch();
    await fixture.output(machine, 'sudo /usr/sbin/sshd -p 8080');
    assert.equal(await answers(machine, 8080), false);
    await driver.setFirewall({ ...machine.spec, firewall: [web] });
    await until('the port is open', () => answers(machine, 8080));
    await driver.restart({ ...machine.spec, firewall: [web] });
    await fixture.running(machine.id);
    await fixture.output(machine, 'sudo /usr/sbin/sshd -p 8080');
    await until('the port is still open', () => answers(machine, 8080));
    await driver.setFirewall({
      ...machine.spec,
      firewall: [{ ...web, sourceNetwork: '192.0.2.77/32' }],
    });
    assert.equal(await answers(machine, 8080), false);
    await driver.terminate(machine.id);
    const acl = `/1.0/network-acls/millrace-${fixture.owner.slice(0, 12)}`;
    assert.deepEqual((await fixture.lxd.request<{ ingress: unknown[] }>('GET', acl)).ingress, []);
  });

  test('concurrent rules of several servers are all kept', async () => {
    const plan = fixture.driver.addressRange();
    const client = createDaemonClient({ url: `unix:${fixture.lxd.socket}` }, 'default');
    const servers = await Promise.all(
      [1, 2].map(() => openNetworkAcl(client, plan, fixture.owner)),
    );
    const ids = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(32));
    const put = (id: string, index: number) =>
      servers[index % 2]!.set(id, plan.last, { firewall: [] });
    await Promise.all(ids.map(put));
    const path = `/1.0/network-acls/millrace-${fixture.owner.slice(0, 12)}`;
    type Kept = { ingress: { description: string }[] };
    const { ingress } = await client.get<Kept>(path);
    assert.deepEqual(
      ingress.map(({ description }) => description).sort(),
      ids.map((id) => `millrace ${id}`),
    );
    await Promise.all(ids.map((id) => servers[0]!.set(id, null, null)));
    assert.deepEqual((await client.get<Kept>(path)).ingress, []);
    await client.close();
  });

  test('machines of one account reach each other, those of others never, nor take an address', async () => {
    const [one, other, stranger] = await Promise.all([
      fixture.launch({ account: 'same' }),
      fixture.launch({ account: 'same' }),
      fixture.launch({ account: 'another' }),
    ]);
    // With `exec`, because otherwise a child of the shell would go on connecting for a minute.
    const knock = (at: string) => `timeout 2 bash -c 'exec head -c 4 < /dev/tcp/${at}/22'`;
    const greets = async (from: Launched, to: Launched) =>
      (await fixture.client.ssh(from, knock(to.privateIp))).stdout === 'SSH-';
    await until('a sibling greets', () => greets(one, other));
    await until('the other one greets', () => greets(other, one));
    assert.equal(await greets(stranger, one), false);
    // Neither open rules nor packets in both directions by the gateway join accounts.
    for (const machine of [one, stranger]) {
      await fixture.driver.setFirewall({ ...machine.spec, firewall: [everything] });
    }
    const { gateway } = fixture.driver.addressRange();
    for (const [at, to] of [
      [one, stranger],
      [stranger, one],
    ] as const) {
      await fixture.output(at, `sudo ip route add ${to.ip}/32 via ${gateway}`);
    }
    assert.equal(await greets(stranger, one), false);
    assert.equal(await greets(one, stranger), false);
    assert.equal(await answers(one, 22), true);
    await fixture.driver.restart({ ...other.spec, firewall: [] });
    await fixture.running(other.id);
    await until('it greets after a restart', () => greets(one, other));

    const { last } = fixture.driver.addressRange();
    const free = [0, 1, 2, 3]
      .map((back) => last.replace(/\d+$/, (end) => `${Number(end) - back}`))
      .find((address) => ![one, other, stranger].some(({ ip }) => ip === address))!;
    await fixture.output(one, `sudo ip addr add ${free}/32 dev eth0`);
    assert.equal(await answers({ ...one, ip: free }, 22), false);
    await Promise.all([one, other, stranger].map(({ id }) => fixture.driver.terminate(id)));
    const acl = `/1.0/network-acls/millrace-${fixture.owner.slice(0, 12)}`;
    const left = await fixture.lxd.request<{ ingress: unknown[]; config: object }>('GET', acl);
    assert.deepEqual([left.ingress, left.config], [[], {}]);
  });

  test('machines that use DHCP get the routes to their siblings', async () => {
    const machine = await fixture.launch();
    const script = `printf '#!/bin/sh\\necho "$1 $staticroutes"\\n' > lease; chmod +x lease`;
    await fixture.output(machine, script);
    const { gateway } = fixture.driver.addressRange();
    const offered = await fixture.output(
      machine,
      'sudo busybox udhcpc -q -n -t 20 -T 1 -i eth0 -O staticroutes -s ./lease 2>/dev/null',
    );
    const routes = /bound (.*)/.exec(offered)?.[1]?.split(' ') ?? [];
    assert.deepEqual(
      routes.filter((_, index) => index % 2 === 1),
      ['0.0.0.0', gateway, gateway, gateway],
      offered,
    );
    await fixture.driver.terminate(machine.id);
  });

  test('user data may be as large as the API allows', async () => {
    const userData = `#!/bin/sh\n# ${'x'.repeat(1_000_000)}\ntouch /home/ubuntu/large\n`;
    const machine = await fixture.launch({ userData });
    await until('it ran', async () => (await fixture.client.ssh(machine, 'ls large')).code === 0);
    await fixture.driver.terminate(machine.id);
  });

  test('an image for virtual machines is refused where the host has no KVM', async (context) => {
    const { lxd, driver } = fixture;
    if (/virtual machines/.test((await driver.describe()).isolation)) return context.skip('it has');
    const folder = `${lxd.folder}/virtual`;
    mkdirSync(folder);
    writeFileSync(`${folder}/metadata.yaml`, `architecture: ${architecture()}\ncreation_date: 1\n`);
    writeFileSync(`${folder}/rootfs.img`, Buffer.alloc(4096));
    execFileSync('tar', ['-cf', `${folder}.tar`, '-C', folder, 'metadata.yaml', 'rootfs.img']);
    await lxd.importImage(`${folder}.tar`, 'virtual');
    const refused = { failure: 'impossible', message: /KVM/ };
    await assert.rejects(driver.launch(fixture.spec({ image: 'virtual' })), refused);
    const { target } = await lxd.request<{ target: string }>('GET', '/1.0/images/aliases/virtual');
    await lxd.request('DELETE', `/1.0/images/${target}`);
  });

  test('on a network with foreign machines no rule is changed, and the report says so', async () => {
    const { lxd } = fixture;
    const { target } = await lxd.request<{ target: string }>(
      'GET',
      `/1.0/images/aliases/${smallImage}`,
    );
    await lxd.request('POST', '/1.0/instances', {
      name: 'foreign',
      source: { type: 'image', fingerprint: target },
      devices: {
        root: { type: 'disk', path: '/', pool: 'default' },
        eth0: { type: 'nic', network: lxd.network },
      },
    });
    const driver = await fixture.open({ owner: 'second' });
    assert.match((await driver.describe()).network, /not enforced/);
    assert.match((await fixture.driver.describe()).network, /by firewall rules/);
    await lxd.request('DELETE', '/1.0/instances/foreign');
  });

  test('an image with neither cloud-init nor our templates gets its seed as files', async () => {
    const { lxd, driver } = fixture;
    const image = await buildHostImage(`${lxd.folder}/image`, { templates: false });
    await lxd.importImage(image, 'bare');
    const userData = '#cloud-config\nwrite_files:\n- path: /etc/greeting\n  content: hello\n';
    const machine = await fixture.launch({ image: 'bare', userData });
    assert.equal(await fixture.output(machine, 'hostname'), machine.spec.hostname);
    await until('user data ran', async () =>
      (await fixture.client.ssh(machine, 'cat /etc/greeting')).stdout.startsWith('hello'),
    );
    const names = (await driver.images()).map(({ name }) => name).sort();
    assert.deepEqual(names, ['bare', smallImage]);
    await driver.terminate(machine.id);
  });

  test('a terminal is a login as ubuntu that can be resized, paused and ended', async () => {
    const { driver } = fixture;
    assert.equal(await driver.attachTerminal('0'.repeat(32), { columns: 80, rows: 24 }), undefined);
    const machine = await fixture.launch();
    const terminal = (await driver.attachTerminal(machine.id, { columns: 91, rows: 31 }))!;
    let seen = '';
    terminal.onData((data) => {
      seen += data;
    });
    const type = (line: string) => terminal.write(Buffer.from(`${line}\n`));
    type('id -un; pwd; stty size');
    await until('it answers', () => /ubuntu\s+\/home\/ubuntu\s+31 91/.test(seen));
    terminal.resize({ columns: 120, rows: 40 });
    await until('it was resized', () => {
      type('stty size');
      return /40 120/.test(seen);
    });
    terminal.pause();
    type('echo $((40000 + 2))');
    terminal.resume();
    await until('it goes on', () => seen.includes('40002'));
    const exit = exitOf(terminal);
    type('exit 7');
    assert.deepEqual(await exit, { code: 7, signal: null });
    const second = (await driver.attachTerminal(machine.id, { columns: 80, rows: 24 }))!;
    const ended = exitOf(second);
    second.kill();
    await ended;
    await driver.terminate(machine.id);
  });

  test('accelerators given by device node are listed, and only they appear in the machine', async () => {
    const node = { address: '/dev/zero', model: 'NVIDIA H100 80GB HBM3', memoryGib: 80 };
    const driver = await fixture.open({ gpus: { deviceNodes: [node] } });
    assert.deepEqual((await driver.describe()).gpus, [node]);
    const [machine, plain] = await Promise.all([
      fixture.launch({ gpus: [node.address] }, driver),
      fixture.launch({}, driver),
    ]);
    assert.equal(
      await fixture.output(machine, 'head -c 4 /dev/nvidia0 | od -An -tx1'),
      '00 00 00 00',
    );
    await assert.rejects(fixture.output(plain, 'test -e /dev/nvidia0'));
    await driver.restart(machine.spec);
    const again = await fixture.running(machine.id, driver);
    assert.equal(await fixture.output(again, 'test -c /dev/nvidia0 && echo there'), 'there');
    await Promise.all([driver.terminate(machine.id), driver.terminate(plain.id)]);
  });

  test('accelerators are measured by nvidia-smi in the machine, whose output is not kept', async () => {
    const node = { address: '/dev/zero', model: 'NVIDIA H200', memoryGib: 140 };
    const driver = await fixture.open({ gpus: { deviceNodes: [node] } });
    const machine = await fixture.launch({ gpus: [node.address] }, driver);
    const measure = async () => (await driver.stats(machine.id))?.gpus;
    const missing = {
      unavailable: 'nvidia-smi is missing in the machine, lists no GPU there, or takes too long.',
    };
    assert.deepEqual(await measure(), missing);
    const program = '/usr/local/bin/nvidia-smi';
    const install = (line: string) =>
      fixture.output(
        machine,
        `printf '#!/bin/sh\\n${line}\\n' | sudo tee ${program}; sudo chmod 755 ${program}`,
      );
    await install('echo GPU-a, NVIDIA H200, 97, 43601, 143771');
    const mib = 2 ** 20;
    const h200 = { model: 'NVIDIA H200', busyPercent: 97 };
    const expected = { ...h200, memoryBytes: 43_601 * mib, totalBytes: 143_771 * mib };
    assert.deepEqual(await measure(), { value: [expected] });
    await install('yes');
    assert.deepEqual(await measure(), missing);
    const logs = await fixture.lxd.request<string[]>(
      'GET',
      `/1.0/instances/${instanceName(machine.id)}/logs`,
    );
    assert.deepEqual(
      logs.filter((log) => log.includes('exec')),
      [],
    );
    await driver.terminate(machine.id);
  });

  test('a command that takes too long is ended inside the machine', async () => {
    const machine = await fixture.launch();
    const client = createDaemonClient({ url: `unix:${fixture.lxd.socket}` }, 'default');
    const path = `/1.0/instances/${instanceName(machine.id)}`;
    assert.equal(await runInside(client, path, ['sh', '-c', 'exit 7']), 7);
    assert.notEqual(await runInside(client, path, ['sleep', '1234'], 1), 0);
    const list = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    assert.doesNotMatch(await fixture.output(machine, list), /sleep 1234/);
    client.close();
    await fixture.driver.terminate(machine.id);
  });

  test('a machine that blocks the server is still reported as running', async () => {
    const { lxd } = fixture;
    const machine = await fixture.launch();
    const path = `/1.0/instances/${instanceName(machine.id)}/exec`;
    // Rules inside the machine drop what the probe sends.
    await lxd.request('POST', path, {
      command: ['ip', 'route', 'add', 'blackhole', `${lxd.gateway}/32`],
    });
    const fresh = await fixture.open();
    assert.equal((await fixture.running(machine.id, fresh)).ip, machine.ip);
    await fixture.driver.terminate(machine.id);
  });
});

/** As the kernel has it for the machine's first process. */
async function memoryLimit({ lxd }: Fixture, id: string): Promise<number> {
  const path = `/1.0/instances/${instanceName(id)}/state`;
  const { pid } = await lxd.request<{ pid: number }>('GET', path);
  const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  const old = /:memory:(.*)/.exec(groups)?.[1];
  const file = old
    ? `/sys/fs/cgroup/memory${old}/memory.limit_in_bytes`
    : `/sys/fs/cgroup${/^0::(.*)/m.exec(groups)?.[1]}/memory.max`;
  return Number(readFileSync(file, 'utf8'));
}

function exitOf(terminal: Terminal): Promise<{ code: number; signal: number | null }> {
  return new Promise((resolve) => terminal.onExit(resolve));
}

function answers({ ip }: Running, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port, timeout: 500 });
    const finish = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
    socket.once('timeout', () => finish(false));
  });
}
