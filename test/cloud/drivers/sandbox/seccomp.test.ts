// The seccomp filter, attacked from inside real machines: calls that other container runtimes refuse fail in
// every kind of session, and ordinary programs work.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import {
  findRecordedProcess,
  machineDirectory,
} from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { instructions } from '#cloud/drivers/sandbox/native/instructions.ts';
import { toFilter } from '#cloud/drivers/sandbox/seccomp/filter.ts';
import { inspected, nesting, refused } from '#cloud/drivers/sandbox/seccomp/syscalls.ts';
import {
  createFixture,
  type Fixture,
  type Launched,
  noSsh,
} from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';
import { needs, use } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

const known = process.arch === 'x64' || process.arch === 'arm64' ? process.arch : null;
const skip = noSsh || needs('pgrep') || (known === null && 'no filter for this processor');
const architecture = known ?? 'x64';

/** Makes a system call and prints its errno, or 0. Strings as arguments stand for their address. */
function call(number: number, ...values: (number | string)[]): string {
  const list = values.map((value) => (typeof value === 'string' ? `"${value}"` : value));
  return `perl -e 'my @a = (${list.join(', ')}); print syscall(${number}, @a) < 0 ? $!+0 : 0'`;
}

const eperm = '1';
const enosys = '38';
const unsupportedFamily = '97';

describe('the seccomp filter of a machine', { skip, timeout: 300_000 }, () => {
  let fixture: Fixture;
  let machine: Launched;
  const inside = async (command: string) => {
    const { stdout, stderr } = await fixture.client.ssh(machine, command);
    return stdout.trim() || stderr.trim();
  };
  before(async () => {
    fixture = await createFixture();
    machine = await fixture.launch({ hostname: 'filtered', userData: '#!/bin/sh\nsleep 1000 &\n' });
  });
  after(() => fixture.close());

  test('every refused call fails, also for root', async () => {
    const calls = Object.entries({ ...refused, ...nesting })
      .map(([name, numbers]) => [name, numbers[architecture]] as const)
      .filter(([, number]) => number !== null);
    const perl = calls.map(
      ([name, number]) =>
        `print "${name} ", syscall(${number}, 0, 0, 0, 0, 0) < 0 ? $!+0 : 0, "\\n";`,
    );
    const expected = calls.map(([name]) => `${name} ${eperm}`).join('\n');
    assert.equal(await inside(`perl -e '${perl.join('')}'`), expected);
    if (isRoot) assert.equal(await inside(`sudo perl -e '${perl.join('')}'`), expected);
  });

  test('no namespace can be created, and clone3, whose flags are hidden, does not exist', async () => {
    const { clone, unshare, clone3 } = inspected;
    for (const flags of [0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x80]) {
      assert.equal(await inside(call(unshare[architecture], flags)), eperm, String(flags));
    }
    assert.equal(await inside(call(clone[architecture], 0x10000011, 0, 0, 0, 0)), eperm);
    assert.equal(await inside(call(clone3[architecture], 0, 0)), enosys);
    assert.match(await inside('unshare --user --map-root-user true'), /not permitted/);
    // Flags that create no namespace.
    assert.equal(await inside(call(unshare[architecture], 0x400)), '0');
  });

  test('sockets are Unix, internet, netlink or packet sockets; netfilter is closed', async () => {
    const socket = inspected.socket[architecture];
    for (const family of [40, 38, 9, 21, 29, 31, 44]) {
      assert.equal(await inside(call(socket, family, 1, 0)), unsupportedFamily, String(family));
    }
    assert.equal(await inside(call(socket, 16, 3, 12)), eperm);
    for (const family of [1, 2, 10]) assert.equal(await inside(call(socket, family, 1, 0)), '0');
  });

  test('numbers of another ABI and of unknown calls do not exist', async () => {
    assert.equal(await inside(call(0x40000000, 0, 0, 0)), enosys);
    assert.equal(await inside(call(4000, 0, 0, 0)), enosys);
    assert.equal(await inside(call(inspected.personality[architecture], 0x40000)), eperm);
    assert.equal(await inside(call(inspected.personality[architecture], 0xffffffff)), '0');
  });

  test('every way in is filtered: process 1, user data, commands, sftp and terminals', async () => {
    await until('user data runs', async () => (await inside('pgrep -x sleep | wc -l')) === '2');
    assert.equal(await inside("grep -L '^Seccomp:.2' /proc/[0-9]*/status 2>/dev/null"), '');
    const filtered = "grep -c '^Seccomp:.2' /proc/self/status";
    assert.equal(await inside(filtered), '1');
    const terminal = await fixture.driver.attachTerminal(machine.id, { columns: 80, rows: 24 });
    let screen = '';
    terminal!.onData((chunk) => {
      screen += chunk;
    });
    terminal!.write(Buffer.from(`echo "[$(${filtered})]"; exit\r`));
    await until('the terminal answers', async () => screen.includes('[1]'));
  });

  test('sudo, threads, processes, tmux and package tools work', async () => {
    if (isRoot) assert.equal(await inside('sudo id -u'), '0');
    assert.equal(await inside("/run/machine/node -p '1 + 1'"), '2');
    assert.equal(await inside('(true & wait; echo $((6 * 7)))'), '42');
    if (use('python3').length > 0) {
      const threads =
        'import threading, subprocess; t = threading.Thread(target=print, args=("thread",)); ' +
        't.start(); t.join(); print(subprocess.check_output(["echo", "child"]).decode(), end="")';
      assert.equal(await inside(`/usr/bin/python3 -c '${threads}'`), 'thread\nchild');
    }
    if (use('tmux').length > 0) {
      await inside('tmux new-session -d "echo in tmux > ~/seen; sleep 100"');
      await until('tmux runs', async () => (await inside('cat ~/seen')) === 'in tmux');
    }
    if (use('apt-get').length > 0) assert.match(await inside('apt-get --version'), /^apt /);
  });

  test('a file of the tenant is loaded into process 1 only after the filter is installed', async () => {
    const booted = await fixture.launch();
    // Its loader waits for a writer, so process 1 stops at the first program that loads the tenant's files.
    const sudo = isRoot ? 'sudo ' : '';
    const preload = `mkfifo ~/fifo && echo /home/ubuntu/fifo | ${sudo}tee /etc/ld.so.preload`;
    assert.equal((await fixture.client.ssh(booted, preload)).code, 0);
    await fixture.driver.restart(booted.spec);
    const { init } = (await findRecordedProcess(machineDirectory(fixture.dataDir, booted.id)))!;
    const read = (name: string) => readFile(`/proc/${init.pid}/${name}`, 'latin1');
    await until('process 1 waits for the writer', async () => {
      const isEnv = (await read('cmdline')).startsWith('/usr/bin/env');
      return isEnv && /^State:\sS/m.test(await read('status'));
    });
    assert.match(await read('status'), /^Seccomp:\s2$/m);
    await fixture.driver.terminate(booted.id);
  });

  test('a filesystem whose mount point became a link does not replace the filter program', async () => {
    await fixture.driver.createFilesystem('links');
    const filesystems = [{ id: 'links', mountPoint: '/data/x' }];
    const booted = await fixture.launch({ filesystems });
    const sudo = isRoot ? 'sudo ' : '';
    const commands = [
      `cp -r /run/machine/bin /run/machine/init /data/x`,
      `printf '#!/bin/sh\nexec "$@"' >/data/x/confine`,
      `chmod 755 /data/x/confine`,
      `${sudo}mv /data /own-data`,
      `${sudo}mkdir /data`,
      `${sudo}ln -s /run/machine /data/x`,
    ];
    assert.equal((await fixture.client.ssh(booted, commands.join(' && '))).code, 0);
    await fixture.driver.restart(booted.spec);
    const { stdout } = await fixture.client.ssh(booted, 'grep Seccomp: /proc/1/status');
    assert.match(stdout, /^Seccomp:\s2$/m);
    assert.match(await fixture.driver.bootLog(booted.id), /\/data\/x is a link to \/run\/machine/);
    await fixture.driver.terminate(booted.id);
  });

  test('with nested namespaces, a machine may create them, but keys and io_uring stay closed', async () => {
    const own = await createFixture({ nested: true });
    try {
      const nested = await own.launch();
      const run = async (command: string) => (await own.client.ssh(nested, command)).stdout.trim();
      assert.equal(await run('unshare --user --map-root-user id -u'), '0');
      assert.equal(await run(call(refused.keyctl![architecture]!, 0)), eperm);
      assert.equal(await run(call(refused.io_uring_setup![architecture]!, 0)), eperm);
    } finally {
      await own.close();
    }
  });
});

test('both architectures have a filter within the limits of classic BPF', () => {
  for (const each of Object.keys(instructions) as (keyof typeof instructions)[]) {
    const filter = toFilter(each, { nested: false });
    assert.equal(filter.length % 8, 0);
    assert(filter.length / 8 < 4096);
    assert.equal(filter.readUInt32LE(12), each === 'x64' ? 0xc000003e : 0xc00000b7);
  }
});
