// One machine uses up everything that the kernel counts, while another machine and the host go on as before.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { findControlGroups } from '#cloud/drivers/sandbox/machine/control-groups.ts';
import { memoryForMachines } from '#cloud/drivers/sandbox/machine/memory-reserve.ts';
import { maxConnections } from '#cloud/drivers/sandbox/network/firewall-ruleset.ts';
import { sshOpen } from '#test/support/cloud/machine-spec.ts';
import {
  createFixture,
  type Fixture,
  type Launched,
  noSsh,
} from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';
import { run } from '#test/support/conformance/ssh-client.ts';
import { needs } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

const skip = noSsh || (!isRoot && 'needs root');
const prctl = process.arch === 'x64' ? 157 : 167;
const inotifyInit = process.arch === 'x64' ? 294 : 26;

describe('limits of a machine', { skip, timeout: 60_000 }, () => {
  let fixture: Fixture;
  let greedy: Launched;
  let neighbour: Launched;
  before(async () => {
    fixture = await createFixture();
    const everyUdpPort = {
      protocol: 'udp',
      portRange: [1, 65_535],
      sourceNetwork: '0.0.0.0/0',
    } as const;
    [greedy, neighbour] = await Promise.all([
      fixture.launch({ hostname: 'greedy', firewall: [sshOpen, everyUdpPort] }),
      fixture.launch({ hostname: 'neighbour' }),
    ]);
  });
  after(() => fixture.close());

  const inside = async (machine: Launched, command: string) =>
    (await fixture.client.ssh(machine, command)).stdout.trim();

  /** Runs perl in the greedy machine until it has counted what it got, and keeps it there during `check`. */
  async function whileHeld(perl: string, check: (count: number) => Promise<void>) {
    const command = `perl -e '$| = 1; my ($n, @held) = (0); ${perl}; print "$n\\n"; <STDIN>'`;
    await until('the machine works', async () => (await inside(greedy, 'echo ok')) === 'ok');
    const child = fixture.client.spawnSsh(greedy, [command], { stdio: 'pipe' });
    try {
      const lines = createInterface({ input: child.stdout! });
      const [line] = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
      await check(Number(line));
    } finally {
      child.stdin!.end();
      await once(child, 'close');
    }
  }

  /** True if a session with a terminal works in the neighbour. */
  async function neighbourHasTerminal(): Promise<boolean> {
    const terminal = await fixture.driver.attachTerminal(neighbour.id, { columns: 80, rows: 24 });
    const exit = new Promise<number>((resolve) => terminal!.onExit(({ code }) => resolve(code)));
    terminal!.write(Buffer.from('test -t 0 && exit 7\r'));
    return (await exit) === 7;
  }

  test('pseudo-terminals', async () => {
    await whileHeld('$n++ while open($held[$n], "+<", "/dev/ptmx")', async (count) => {
      assert(count > 100 && count <= 256, String(count));
      assert(await neighbourHasTerminal());
      assert.equal((await run('script', ['-qec', 'true', '/dev/null'])).code, 0);
    });
  });

  test('input that a program does not read', async (t) => {
    const terminal = await fixture.driver.attachTerminal(greedy.id, { columns: 80, rows: 24 });
    t.after(() => terminal!.kill());
    let screen = '';
    terminal!.onData((data) => {
      screen += data;
    });
    terminal!.write(Buffer.from('stty raw -echo; echo raw$((1)); exec sleep 1000\r'));
    await until('the program does not read', () => screen.includes('raw1'));
    const chunk = Buffer.alloc(65_536, 'x');
    await until('the terminal takes no more', () => !terminal!.write(chunk));
    // Before, the server stood still from here on.
    assert(await neighbourHasTerminal());
  });

  test('inotify instances, which root inside can not raise', async () => {
    const take = `$n++ while syscall(${inotifyInit}, 0) >= 0`;
    const raise = 'sudo sh -c "echo 9999 > /proc/sys/user/max_inotify_instances"';
    assert.notEqual((await fixture.client.ssh(greedy, raise)).code, 0);
    await whileHeld(take, async (count) => {
      assert(count > 50 && count <= 128, String(count));
      const one = `perl -e 'print syscall(${inotifyInit}, 0) >= 0 ? "one" : $!'`;
      assert.equal(await inside(neighbour, one), 'one');
      assert.equal((await run('sh', ['-c', one])).stdout, 'one');
    });
  });

  test('processes', async () => {
    const endWithParent = `syscall(${prctl}, 1, 9)`;
    const fork = `while (defined(my $p = fork)) { $p or do { ${endWithParent}; sleep 1000; exit }; $n++ }`;
    await whileHeld(fork, async (count) => {
      assert(count > 100 && count <= 2048, String(count));
      assert.equal(await inside(neighbour, 'echo "$(echo fine)"'), 'fine');
    });
  });

  test('open files', async () => {
    const open = '$n++ while open($held[$n], "<", "/dev/null")';
    await whileHeld(open, async (count) => {
      assert(count <= 65_536, String(count));
      assert.equal(await inside(neighbour, 'cat /etc/hostname'), 'neighbour');
    });
  });

  test('tracked connections', {
    skip: needs('ip', 'nft') || !existsSync('/proc/net/nf_conntrack'),
  }, async () => {
    const sockets = Array.from({ length: maxConnections + 300 }, () => createSocket('udp4'));
    const tracked = () =>
      readFileSync('/proc/net/nf_conntrack', 'utf8')
        .split('\n')
        .filter((line) => line.includes(` src=${greedy.privateIp} `)).length;
    try {
      for (const [index, socket] of sockets.entries()) {
        socket.on('error', () => {});
        await new Promise((resolve) => socket.send('x', 1024 + index, greedy.privateIp, resolve));
      }
      const count = tracked();
      assert(count > maxConnections / 2 && count <= maxConnections, String(count));
    } finally {
      for (const socket of sockets) socket.close();
    }
    assert.equal(await inside(neighbour, 'echo fine'), 'fine');
  });

  test('memory: the host keeps a part of it, whatever all machines together use', async () => {
    const gib = 1024 ** 3;
    assert.equal(memoryForMachines(null, 64 * gib), 60 * gib);
    assert.equal(memoryForMachines(null, 8 * gib), 7 * gib);
    assert.equal(memoryForMachines(null, gib), gib / 2);
    assert.equal(memoryForMachines(10, 64 * gib), 54 * gib);
    const allowed = memoryForMachines(null);
    assert.equal((await fixture.driver.describe()).memoryGib, Math.floor(allowed / gib));
    const groups = await findControlGroups();
    const files = ['memory.limit_in_bytes', 'memory.max'].flatMap((file) =>
      (groups?.mounts ?? []).map((mount) => path.join(mount, 'millrace', file)),
    );
    const limit = Number(readFileSync(files.find((file) => existsSync(file))!, 'utf8'));
    // The kernel rounds to pages.
    assert(limit <= allowed && limit > allowed - 2 ** 16);
  });

  test('core files, and the order in which the kernel ends processes', async () => {
    assert.equal(await inside(greedy, 'ulimit -c; ulimit -Hc'), '0\n0');
    assert.equal(
      await inside(greedy, 'cat /proc/self/oom_score_adj /proc/1/oom_score_adj'),
      '500\n500',
    );
    await until(
      'the greedy machine works again',
      async () => (await inside(greedy, 'echo ok')) === 'ok',
    );
  });
});
