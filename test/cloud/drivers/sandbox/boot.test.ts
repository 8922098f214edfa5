// First boots: both kinds of user data, the built-in sftp server, filesystems, and how half-created machines
// recover.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inspectHost } from '#cloud/drivers/sandbox/host.ts';
import {
  bootMachine,
  countEngineThreads,
  toEngineThreads,
} from '#cloud/drivers/sandbox/machine/boot.ts';
import { findRecord, machineDirectory } from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { createFixture, type Fixture, noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';
import { createSshClient, run } from '#test/support/conformance/ssh-client.ts';
import { needs } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

describe('booting a sandbox', { skip: noSsh, timeout: 300_000 }, () => {
  let fixture: Fixture;
  before(async () => {
    // The strictest umask an operator may have set.
    process.umask(0o077);
    fixture = await createFixture({ sftpServer: 'own' });
  });
  after(() => fixture.close());

  test('cloud-config writes files, adds keys and runs commands; the log says that packages are skipped', async () => {
    const friend = createSshClient();
    const machine = await fixture.launch({
      userData: [
        '#cloud-config',
        'packages: [nginx]',
        `ssh_authorized_keys: ["${friend.publicKey}"]`,
        'write_files:',
        '  - {path: /etc/made/file, content: "text\\n", permissions: "0644"}',
        'runcmd:',
        '  - [sh, -c, "echo ran as $(id -un) >> /etc/made/file"]',
        '  - echo the last line',
      ].join('\n'),
    });
    const finished = async () =>
      (await fixture.driver.bootLog(machine.id)).includes('with status 0');
    await until('user data finished', finished);
    const inside = await friend.ssh(machine, 'cat /etc/made/file /var/log/cloud-init-output.log');
    friend.close();
    assert.match(inside.stdout, new RegExp(`^text\nran as ${isRoot ? 'root' : 'ubuntu'}\n`));
    assert.match(inside.stdout, /package nginx was not installed: the system is read-only/);
    assert.match(inside.stdout, /the last line/);
  });

  test('weights are seen read-only, also after a restart, and nothing beside them', async () => {
    const folder = path.join(fixture.dataDir, 'weights of a model');
    await mkdir(path.join(folder, 'inner'), { recursive: true });
    const names = ['x-00001-of-00002.gguf', 'x-00002-of-00002.gguf', 'config.json', 'y.gguf'];
    for (const name of names) {
      await writeFile(path.join(folder, name), name);
      await chmod(path.join(folder, name), 0o644);
    }
    const whole = await fixture.launch({ weights: folder });
    const output = async (to: typeof whole, command: string) =>
      (await fixture.client.ssh(to, command)).stdout.trim();
    const look = () => output(whole, 'cd /weights && echo * && cat y.gguf x-00002*');
    const shown =
      /^config\.json x-00001-of-00002\.gguf x-00002-of-00002\.gguf y\.gguf\ny\.ggufx-00002/;
    assert.match(await look(), shown);
    for (const change of ['touch new', 'echo none >y.gguf', 'rm -f y.gguf'])
      assert.match(
        await output(whole, `cd /weights && (${change}) 2>&1`),
        /Read-only file system|busy/,
      );
    await fixture.driver.restart(fixture.spec({ id: whole.id, weights: folder }));
    assert.match(await look(), shown);
    const split = await fixture.launch({ weights: path.join(folder, 'x-00001-of-00002.gguf') });
    const listed = await output(split, 'ls /weights');
    assert.equal(listed, 'x-00001-of-00002.gguf\nx-00002-of-00002.gguf');
    for (const { id } of [whole, split]) await fixture.driver.terminate(id);
  });

  test('a boot that a crash interrupted may overlap with the next boot of the machine', async () => {
    const { id } = await fixture.launch();
    const directory = machineDirectory(fixture.dataDir, id);
    const record = await findRecord(directory);
    const host = await inspectHost(fixture.dataDir, { isolation: 'auto', nested: false });
    let ready = 0;
    const stop = async () => {
      ready++;
      throw new Error('far enough');
    };
    const context = { host, dataDir: fixture.dataDir, shareOpt: false };
    const boot = () => bootMachine(context, directory, record!, stop);
    for (let round = 0; round < 3; round++) {
      const boots = Array.from({ length: 4 }, () => assert.rejects(boot(), /far enough/));
      await Promise.all(boots);
    }
    assert.equal(ready, 12);
    await fixture.driver.terminate(id);
  });

  test('without ip and ifconfig, perl brings the loopback interface up', {
    skip: needs('ip'),
  }, async () => {
    const script = await readFile(
      new URL('../../../../src/cloud/drivers/sandbox/scripts/assemble.sh', import.meta.url),
      'utf8',
    );
    const step = /^\{ ip link set lo up[\s\S]*?>&2\n/m.exec(script)?.[0];
    assert(step);
    const withoutTools = `ip() { false; }; ifconfig() { false; }; ${step} command ip link show lo`;
    const namespace = ['--user', '--map-root-user', '--net'];
    const { stdout, stderr } = await run('unshare', [...namespace, 'sh', '-c', withoutTools]);
    assert.match(stdout, /<LOOPBACK,UP/);
    assert.equal(stderr, '');
  });

  test('a flood of output neither fills the boot log nor stops the machine', async () => {
    const machine = await fixture.launch({
      userData: '#!/bin/sh\nyes flood | head -c 5000000\necho end\n',
    });
    const read = () => fixture.driver.bootLog(machine.id);
    await until('the end is kept', async () => (await read()).includes('end\n'));
    assert.ok((await read()).length <= 256 * 1024);
    const file = machineDirectory(fixture.dataDir, machine.id).bootLog;
    assert.ok(statSync(file).size <= 1024 * 1024);
    await fixture.driver.terminate(machine.id);
  });

  test('the boot log can be read inside, but not written, not even by root', async () => {
    const machine = await fixture.launch({ userData: '#!/bin/sh\necho from the script\n' });
    const log = async () => fixture.driver.bootLog(machine.id);
    await until('user data finished', async () => (await log()).includes('with status 0'));
    const { stdout } = await fixture.client.ssh(machine, 'cat /var/log/cloud-init-output.log');
    assert.match(stdout, /from the script/);
    for (const attempt of [
      'echo x >> /run/machine/boot.log',
      'truncate -s 0 /run/machine/boot.log',
    ]) {
      const command = isRoot ? `sudo sh -c '${attempt}'` : attempt;
      assert.notEqual((await fixture.client.ssh(machine, command)).code, 0, attempt);
    }
    const links = isRoot ? 'sudo readlink /proc/1/fd/1 /proc/1/fd/2' : 'readlink /proc/1/fd/2';
    assert.doesNotMatch((await fixture.client.ssh(machine, links)).stdout, /boot\.log/);
    await fixture.driver.terminate(machine.id);
  });

  test('the built-in sftp server serves scp and sftp', {
    skip: needs('scp', 'sftp'),
  }, async () => {
    const machine = await fixture.launch();
    const file = path.join(fixture.client.folder, 'file');
    await writeFile(file, Buffer.alloc(2_000_000, 'abc'));
    const options = ['-q', ...fixture.client.options(machine)];
    const there = `ubuntu@${machine.ip}:`;
    assert.equal((await run('scp', [...options, '-p', file, `${there}copy`])).code, 0);
    assert.equal((await run('scp', [...options, `${there}copy`, `${file}.back`])).code, 0);
    assert.ok((await readFile(file)).equals(await readFile(`${file}.back`)));
    const batch = [
      'mkdir folder',
      'rename copy folder/moved',
      'ln -s moved folder/link',
      'chmod 600 folder/moved',
      'ls -l folder',
      '-get folder/missing',
      'rm folder/link',
      'rm folder/moved',
      'rmdir folder',
      '-ls /root',
      'pwd',
      'df',
    ];
    const answer = await run('sftp', ['-b', '-', ...options, there], `${batch.join('\n')}\n`);
    assert.equal(answer.code, 0, answer.stderr);
    assert.match(answer.stdout, /-rw-------[^\n]*2000000[^\n]*moved/);
    assert.match(answer.stdout, /Remote working directory: \/home\/ubuntu/);
    assert.match(answer.stderr, /folder\/missing" not found/);
    if (isRoot) assert.match(answer.stderr, /\/root\/"\): Permission denied/);
    assert.equal((await fixture.client.ssh(machine, 'ls')).stdout, '');
    await fixture.driver.terminate(machine.id);
  });

  test('a filesystem may be mounted in the home but not over the system', async () => {
    const id = 'ab'.repeat(16);
    await fixture.driver.createFilesystem(id);
    const machine = await fixture.launch({
      filesystems: [{ id, mountPoint: '/home/ubuntu/data' }],
    });
    await fixture.client.ssh(machine, 'echo x > data/file');
    assert.equal((await fixture.client.ssh(machine, 'cat /home/ubuntu/data/file')).stdout, 'x\n');
    await fixture.driver.terminate(machine.id);
    for (const mountPoint of [
      '/usr/lib',
      '/',
      '/proc',
      '/data/../etc',
      'data',
      '/data/a b',
      '/run/x',
    ]) {
      const wanted = fixture.spec({ filesystems: [{ id, mountPoint }] });
      await assert.rejects(fixture.driver.launch(wanted), { failure: 'impossible' }, mountPoint);
      assert.deepEqual(await fixture.driver.inspect(wanted.id), { state: 'absent' });
    }
    await fixture.driver.deleteFilesystem(id);
    await fixture.driver.deleteFilesystem(id);
  });

  test('a filesystem over the home or over /home still leaves a home to log in to', async () => {
    const id = 'cd'.repeat(16);
    await fixture.driver.createFilesystem(id);
    for (const mountPoint of ['/home', '/home/ubuntu']) {
      const machine = await fixture.launch({ filesystems: [{ id, mountPoint }] });
      const command =
        'pwd; stat -c %U . .bashrc .ssh; touch mine && findmnt -n -o TARGET -T mine; sudo -n true';
      const { stdout, stderr } = await fixture.client.ssh(machine, command);
      const owners = 'ubuntu\nubuntu\nubuntu\n';
      assert.equal(stdout, `/home/ubuntu\n${owners}${mountPoint}\n`, stderr);
      await fixture.driver.terminate(machine.id);
    }
    await fixture.driver.deleteFilesystem(id);
  });

  test('every host name that the API accepts boots', async () => {
    const hostname = `a${'-'.repeat(62)}`;
    const machine = await fixture.launch({ hostname });
    const { stdout } = await fixture.client.ssh(machine, 'uname -n; cat /etc/hostname');
    assert.equal(stdout, `a\n${hostname}\n`);
    await fixture.driver.terminate(machine.id);
    const wanted = fixture.spec({ hostname: 'a b' });
    await assert.rejects(fixture.driver.launch(wanted), { failure: 'impossible' });
  });

  test('a half-created machine is listed, and can be launched or removed like a new one', async () => {
    const wanted = fixture.spec();
    const folder = path.join(fixture.dataDir, 'machines', wanted.id);
    await mkdir(path.join(folder, 'disk.new', 'etc'), { recursive: true });
    assert.ok((await fixture.driver.list()).includes(wanted.id));
    assert.equal((await fixture.driver.inspect(wanted.id)).state, 'stopped');
    await fixture.driver.launch(wanted);
    assert.equal((await fixture.driver.inspect(wanted.id)).state, 'running');
    await rm(path.join(folder, 'machine.json'));
    await fixture.driver.terminate(wanted.id);
    assert.deepEqual(await fixture.driver.inspect(wanted.id), { state: 'absent' });
  });

  test('a machine whose processes ended is stopped, and starts again on its own disk', async () => {
    const machine = await fixture.launch();
    await fixture.client.ssh(machine, 'echo kept > file');
    const file = path.join(fixture.dataDir, 'machines', machine.id, 'process.json');
    const recorded = JSON.parse(await readFile(file, 'utf8'));
    process.kill(recorded.init.pid, 'SIGKILL');
    await until('it is stopped', async () => {
      return (await fixture.driver.inspect(machine.id)).state === 'stopped';
    });
    assert.notEqual((await fixture.client.ssh(machine, 'true')).code, 0);
    // As after a reboot of the host, where the same pid may belong to another process.
    await writeFile(
      file,
      JSON.stringify({ ...recorded, boot: 'earlier', init: { pid: 1, startTime: '1' } }),
    );
    await fixture.driver.launch(machine.spec);
    const state = await fixture.driver.inspect(machine.id);
    assert.equal(state.state === 'running' && state.ip, machine.ip);
    assert.equal((await fixture.client.ssh(machine, 'cat file')).stdout, 'kept\n');
    await fixture.driver.terminate(machine.id);
  });

  test('a tenant who breaks the files of a machine harms only that machine', async () => {
    const machine = await fixture.launch();
    const outside = path.join(fixture.client.folder, 'untouched');
    await writeFile(outside, 'host');
    const sudo = isRoot ? 'sudo ' : '';
    const links = ['/var/log/cloud-init-output.log', '/etc/ld.so.cache', '/etc/hostname', '/tmp/x'];
    for (const link of links)
      await fixture.client.ssh(machine, `${sudo}ln -sfn ${outside} ${link}`);
    await fixture.client.ssh(
      machine,
      `${sudo}rm -rf /lambda /data; ${sudo}ln -s ${outside} /lambda`,
    );
    await fixture.client.ssh(machine, 'mkdir -p closed/in && chmod 000 closed');
    await fixture.driver.restart(machine.spec);
    assert.equal((await fixture.client.ssh(machine, 'hostname')).stdout, 'machine\n');
    await fixture.driver.terminate(machine.id);
    assert.equal(await readFile(outside, 'utf8'), 'host');
    assert.deepEqual(await fixture.driver.inspect(machine.id), { state: 'absent' });
  });

  test('no file of a tenant is loaded into a program of the boot, which could see the host', async () => {
    const machine = await fixture.launch();
    const sudo = isRoot ? 'sudo ' : '';
    // The loader's complaint tells whether /run/old, where the host's files are at first, was still there.
    await fixture.client.ssh(machine, `echo /run/old | ${sudo}tee /etc/ld.so.preload`);
    const replaceBin = '/usr/bin/rm /bin && /usr/bin/mkdir /bin && /usr/bin/touch /bin/own';
    await fixture.client.ssh(machine, `${sudo}/usr/bin/sh -c '${replaceBin}'`);
    await fixture.driver.restart(machine.spec);
    const inside = await fixture.client.ssh(machine, 'cat /etc/ld.so.preload; ls /bin/own');
    assert.equal(inside.stdout, '/run/old\n');
    const log = await fixture.driver.bootLog(machine.id);
    assert.doesNotMatch(log, /from \/etc\/ld\.so\.preload cannot be preloaded \((?!cannot open)/);

    await fixture.client.ssh(
      machine,
      `${sudo}sh -c 'mv /etc /own-etc && ln -s ${fixture.dataDir} /etc'`,
    );
    await fixture.driver.restart(machine.spec);
    const etc = await fixture.client.ssh(machine, 'ls -A /etc; [ ! -L /etc ] && echo plain');
    assert.equal(etc.stdout, 'plain\n');
    await fixture.driver.terminate(machine.id);
  });

  test('a machine that runs an engine of Millrace reads the compiled sources of the server', async () => {
    const main = path.join(import.meta.dirname, '../../../../src/main.js');
    await run(process.execPath, [main, '--version']);
    const machine = await fixture.launch({ runsEngine: true });
    const command = 'NODE_DEBUG_NATIVE=COMPILE_CACHE millrace --version 2>&1';
    const { stdout } = await fixture.client.ssh(machine, command);
    assert.match(stdout, /src\/cli\/program\.ts was accepted/);
    const start = await fixture.client.ssh(machine, 'cat "$(command -v millrace)"');
    const threads = /MILLRACE_THREADS:-(\d+)/.exec(start.stdout)?.[1];
    assert.equal(Number(threads ?? 0), (await countEngineThreads(machine.spec.vcpus)) ?? 0);
    await fixture.driver.terminate(machine.id);
  });

  test('a model has no more threads than its machine has vCPUs', () => {
    const machines = [1, 2, 4, 16, 16, 32].map((vcpus, at) =>
      toEngineThreads(vcpus, [16, 16, 16, 32, 16, 16][at] ?? 0),
    );
    assert.deepEqual(machines, [1, 1, 3, 8, null, null]);
  });

  test('eight machines launched at once all accept ssh, each at its own address', async () => {
    const machines = await Promise.all(Array.from({ length: 8 }, () => fixture.launch()));
    await Promise.all(
      machines.map(async (machine) => {
        assert.equal((await fixture.client.ssh(machine, 'true')).code, 0);
      }),
    );
    assert.equal(new Set(machines.map(({ ip }) => ip)).size, 8);
    await Promise.all(machines.map(({ id }) => fixture.driver.terminate(id)));
  });
});
