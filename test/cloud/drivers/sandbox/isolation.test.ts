// What a tenant can't reach from inside a sandbox, and that nothing of it is left afterwards.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
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

describe('isolation of sandboxes', { skip: noSsh || needs('ps'), timeout: 300_000 }, () => {
  let fixture: Fixture;
  let mine: Launched;
  let other: Launched;
  let controlPlane: Server;
  const inside = async (command: string) => {
    const { code, stdout, stderr } = await fixture.client.ssh(mine, command);
    return { code, text: stdout.trim(), stderr };
  };

  before(async () => {
    fixture = await createFixture();
    [mine, other] = await Promise.all([
      fixture.launch({ hostname: 'mine', memoryGib: 0.25 }),
      fixture.launch({ hostname: 'other' }),
    ]);
    controlPlane = createServer((_request, response) => response.end('control plane'));
    controlPlane.listen(0, '0.0.0.0');
    await once(controlPlane, 'listening');
    await fixture.client.ssh(other, 'echo "not yours" > ~/secret; echo "not yours" > /tmp/secret');
  });
  after(async () => {
    controlPlane?.close();
    await fixture.close();
  });

  test("another machine's home, /tmp and processes can't be seen", async () => {
    const marker = `sleep 5${process.pid}`;
    await fixture.client.ssh(other, `setsid ${marker} >/dev/null 2>&1 </dev/null &`);
    assert.equal((await inside('cat ~/secret /tmp/secret')).text, '');
    assert.equal((await inside('find / -name secret -type f 2>/dev/null')).text, '');
    assert.equal((await inside(`ps -eo args | grep -cx "${marker}"`)).text, '0');
  });

  test("the host's processes, files and names can't be seen", async () => {
    const child = spawn('sleep', ['987123'], { stdio: 'ignore' });
    try {
      assert.equal((await inside('ps -eo args | grep -c "[s]leep 987123"')).text, '0');
      assert.equal((await inside('kill -0 -1; ls -d /proc/[0-9]* | wc -l')).text.length < 3, true);
    } finally {
      child.kill();
    }
    for (const file of [fixture.dataDir, path.dirname(process.execPath), import.meta.dirname]) {
      assert.notEqual((await inside(`ls -d ${file}`)).code, 0, file);
    }
    assert.doesNotMatch((await inside('tr "\\0" "\\n" < /proc/1/environ')).text, /MACHINE|DATA=/);
    assert.equal((await inside('hostname')).text, 'mine');
    assert.equal(
      (await inside('cut -d: -f1 /etc/passwd | tr "\\n" " "')).text,
      'root nobody ubuntu',
    );
  });

  test("the control plane's port can't be reached by any address of the host", {
    skip: needs('curl'),
  }, async () => {
    const { port } = controlPlane.address() as AddressInfo;
    const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    const hosts = own.filter(({ family }) => family === 'IPv4').map(({ address }) => address);
    const asked = [...new Set(['127.0.0.1', '10.77.0.1', mine.ip, ...hosts])];
    const loop = `for host in ${asked.join(' ')}; do curl -s -m 0.5 http://$host:${port}/; done; true`;
    assert.deepEqual(await inside(loop), { code: 0, text: '', stderr: '' });
  });

  test("another machine's ports can't be reached, including its ssh port", {
    skip: needs('curl'),
  }, async () => {
    const serve =
      "perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(LocalPort=>7777,Listen=>5);" +
      'while($c=$l->accept){print $c "found";close $c}\'';
    await fixture.client.ssh(other, `setsid ${serve} >/dev/null 2>&1 </dev/null &`);
    const ask = (address: string, port: number) =>
      `curl -s --http0.9 -m 1 http://${address}:${port}/`;
    await until('it serves itself', async () => {
      const { stdout } = await fixture.client.ssh(other, ask('127.0.0.1', 7777));
      return stdout === 'found';
    });
    assert.equal((await inside(ask('127.0.0.1', 7777))).text, '');
    assert.equal((await inside(ask(other.privateIp, 7777))).text, '');
    assert.equal((await inside(ask(other.ip, other.sshPort))).text, '');
  });

  test('the system is read-only, even for the root of the machine', async () => {
    assert.notEqual((await inside('touch /usr/mark')).code, 0);
    if (!isRoot) {
      const answer = await inside('sudo id');
      assert.equal(answer.code, 1);
      assert.match(answer.stderr, /has no root user/);
      return;
    }
    assert.equal((await inside('sudo -n id -u')).text, '0');
    assert.equal((await inside('sudo -u ubuntu id -un')).text, 'ubuntu');
    for (const attempt of [
      'touch /usr/mark',
      'mount -o remount,rw /usr',
      'umount /usr',
      'sh -c "echo 1 > /proc/sys/kernel/panic"',
      'mknod /tmp/disk b 8 0',
      'sh -c "echo x > /proc/sysrq-trigger"',
      'cat /proc/kcore',
    ]) {
      assert.notEqual((await inside(`sudo ${attempt}`)).code, 0, attempt);
    }
    assert.equal((await inside('sudo mkdir /workspace && ls -d /workspace')).text, '/workspace');
  });

  test('memory and processes are limited', { skip: !isRoot && 'needs root' }, async () => {
    const eat = 'head -c 600000000 /dev/zero | tail -c 590000000 | wc -c';
    assert.doesNotMatch((await inside(eat)).text, /^590000000$/);
    assert.equal((await inside('true')).code, 0);
    const groups = readFileSync('/proc/mounts', 'utf8').match(/^\S+ (\S+) cgroup2? \S*pids/m)?.[1];
    const folder = path.join(groups ?? '/sys/fs/cgroup', 'millrace', mine.id);
    assert.equal(readFileSync(path.join(folder, 'pids.max'), 'utf8').trim(), '2048');
  });

  /** Runs a machine by a driver whose process a shell script starts, and calls `check` with it. */
  async function withDriverIn(
    shell: readonly [string, ...string[]],
    check: (ssh: (command: string) => Promise<{ stdout: string }>) => Promise<void>,
  ): Promise<void> {
    const folder = '../../../../src/cloud/drivers/sandbox';
    const module = new URL(`${folder}/sandbox.ts`, import.meta.url).href;
    const program = '../../../support/conformance/driver-process.ts';
    const argv = [process.execPath, path.join(import.meta.dirname, program), module];
    const options = JSON.stringify({ dataDir: fixture.dataDir });
    const [command, ...first] = shell;
    const server = spawn(command, [...first, 'bash', ...argv, 'createSandboxDriver', options], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    try {
      const lines = createInterface({ input: server.stdout });
      await once(lines, 'line');
      server.stdin.write(`${JSON.stringify(fixture.spec())}\n`);
      const [line] = await once(lines, 'line');
      await check((inside) => fixture.client.ssh(JSON.parse(line), inside));
    } finally {
      server.kill();
      await once(server, 'exit');
    }
  }

  test('descriptors that the server inherited are closed in machines', async () => {
    const inherit = 'exec 3</etc 77</etc 251</etc; exec "$@"';
    await withDriverIn(['bash', '-c', inherit], async (ssh) => {
      const list = 'ls -l /proc/self/fd /proc/1/fd 2>/dev/null';
      for (const command of [list, `sudo ${list}`]) {
        assert.doesNotMatch((await ssh(command)).stdout, /-> \/etc/);
      }
      assert.match((await ssh(list)).stdout, /0 -> /);
    });
  });

  test("the host's CUDA tools are in the search path", {
    skip: !isRoot && 'needs root',
  }, async () => {
    const install = 'mount -t tmpfs none /usr/local; mkdir -p /usr/local/cuda/bin; exec "$@"';
    await withDriverIn(['unshare', '--mount', 'bash', '-c', install], async (ssh) => {
      for (const start of ['', `bash -l -c '$0 $1' `, 'sudo ', 'sudo -i ']) {
        assert.match((await ssh(`${start}printenv PATH`)).stdout, /:\/usr\/local\/cuda\/bin\n$/);
      }
    });
    assert.doesNotMatch((await inside('echo $PATH')).text, /cuda/);
  });

  test('nothing of a terminated machine is left on the host', async () => {
    const { id } = await fixture.launch();
    const before = await leftovers(id);
    assert.ok(before.length > 0);
    await fixture.driver.terminate(id);
    assert.deepEqual(await leftovers(id), []);
  });

  async function leftovers(id: string): Promise<string[]> {
    const found: string[] = [];
    if (existsSync(path.join(fixture.dataDir, 'machines', id))) found.push('directory');
    if (existsSync(`/sys/class/net/mr-${id.slice(0, 12)}`)) found.push('interface');
    if (isRoot && (await run('nft', ['list', 'tables'])).stdout.includes(id)) found.push('table');
    for (const mount of ['', 'cpu', 'memory', 'pids']) {
      if (existsSync(`/sys/fs/cgroup/${mount}/millrace/${id}`)) found.push(`cgroup ${mount}`);
    }
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        // Only the process that started a machine has the machine's directory in its environment.
        if (readFileSync(`/proc/${pid}/environ`, 'latin1').includes(id))
          found.push(`process ${pid}`);
      } catch {
        // Another user's process, or one that has ended.
      }
    }
    return found;
  }
});

describe('a sandbox without isolation', {
  skip: needs('ssh', 'ssh-keygen', 'pgrep'),
  timeout: 120_000,
}, () => {
  test('a machine without isolation says so and ends with all its processes', async () => {
    // The server's data directory must work even if it is closed to others.
    const mask = process.umask(0o077);
    const fixture = await createFixture({ isolation: 'none', sftpServer: 'own' });
    try {
      const report = await fixture.driver.describe();
      assert.equal(report.isolated, false);
      assert.match(report.isolation, /^NOT ISOLATED/);
      const machine = await fixture.launch();
      const answer = await fixture.client.ssh(machine, 'echo "$HOME"; id -u');
      assert.match(answer.stdout, new RegExp(`^${fixture.dataDir}/machines/`));
      assert.doesNotMatch(answer.stdout, /^0$/m);
      await fixture.client.ssh(
        machine,
        `setsid sleep 6${process.pid} >/dev/null 2>&1 </dev/null &`,
      );
      await fixture.driver.terminate(machine.id);
      const left = await run('pgrep', ['-f', `^sleep 6${process.pid}$`]);
      assert.equal(left.stdout, '');
    } finally {
      process.umask(mask);
      await fixture.close();
    }
  });
});
