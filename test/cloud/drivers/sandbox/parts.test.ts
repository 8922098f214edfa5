// The parts of the sandbox driver that are text in, text out.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { DriverError, type InboundRule } from '#cloud/drivers/driver.ts';
import {
  adviseHost,
  describeIsolation,
  describeNetwork,
} from '#cloud/drivers/sandbox/description.ts';
import { gpuDevices, parseMinor, toGpus } from '#cloud/drivers/sandbox/gpus.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { parseControlGroups } from '#cloud/drivers/sandbox/machine/control-groups.ts';
import { findProcess, isAlive } from '#cloud/drivers/sandbox/machine/process-identity.ts';
import {
  checkAddress,
  chooseLoopbackAddress,
  defaultRange,
  toPrivateAddress,
} from '#cloud/drivers/sandbox/network/addresses.ts';
import { toRuleset } from '#cloud/drivers/sandbox/network/firewall-ruleset.ts';
import { parseNameservers } from '#cloud/drivers/sandbox/network/resolver.ts';
import { parseAuthorizedKeys } from '#cloud/drivers/sandbox/ssh/authorized-keys.ts';
import { createSourceFilter } from '#cloud/drivers/sandbox/ssh/source-filter.ts';
import { readFirstBoot } from '#cloud/drivers/shared/first-boot.ts';
import { toFirstBoot } from '#cloud/drivers/shared/user-data.ts';
import { toFields } from '#lib/computer/nvidia-smi.ts';

const id = `fe01${'0'.repeat(28)}`;

describe('addresses', () => {
  test('the search starts at an address derived from the id and skips taken ones', () => {
    const first = chooseLoopbackAddress(defaultRange, id, new Set());
    assert.equal(first, '127.77.254.1');
    assert.equal(chooseLoopbackAddress(defaultRange, id, new Set([first])), '127.77.254.2');
    assert.equal(toPrivateAddress(defaultRange, first), '10.77.254.1');
  });
  test('the gateway block and addresses outside the range are refused', () => {
    for (const address of ['127.77.0.5', '127.0.0.1', '10.77.1.1', '127.77.1', 'x']) {
      assert.throws(() => checkAddress(defaultRange, address), DriverError);
    }
  });
});

test('a pid with a different start time is a different process', async () => {
  const self = await findProcess(process.pid);
  assert.ok(self && (await isAlive(self)));
  assert.equal(await isAlive({ ...self, startTime: '1' }), false);
  assert.equal(await findProcess(2 ** 22 + 1), undefined);
});

describe('GPUs', () => {
  test('GPUs are read from nvidia-smi, named by UUID and sized in GiB', () => {
    const csv =
      'GPU-aaaa-1, NVIDIA H100 80GB HBM3, 81559, 00000000:1B:00.0\nGPU-bbbb-2, NVIDIA A10, 23028, 00010000:0A:00.0\n';
    assert.deepEqual(toGpus(toFields(csv)), [
      { address: 'GPU-aaaa-1', model: 'NVIDIA H100 80GB HBM3', memoryGib: 80, bus: '0000:1b:00.0' },
      { address: 'GPU-bbbb-2', model: 'NVIDIA A10', memoryGib: 22, bus: '00010000:0a:00.0' },
    ]);
    assert.deepEqual(toGpus(toFields('No devices were found\n')), []);
    assert.equal(parseMinor('Model: \t A10\nDevice Minor: \t 3\n'), 3);
  });
  test('a missing GPU makes a launch impossible', async () => {
    await assert.rejects(gpuDevices(['GPU-none']), { failure: 'impossible' });
  });
});

describe('control groups', () => {
  const first = ['cpu,cpuacct', 'memory', 'pids'].map(
    (name) => `cgroup /sys/fs/cgroup/${name} cgroup rw,relatime,${name} 0 0`,
  );
  const second = 'cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0';
  test('version 1 is preferred on a hybrid host, where it holds the controllers', () => {
    const found = parseControlGroups([...first, second].join('\n'));
    assert.equal(found?.version, 1);
    assert.equal(found?.mounts[0], '/sys/fs/cgroup/cpu,cpuacct');
  });
  test('CPU accounting that is mounted apart from CPU limits is joined as well', () => {
    const apart = ['cpu', 'cpuacct', 'memory', 'pids'].map(
      (name) => `cgroup /cgroup/${name} cgroup rw,${name} 0 0`,
    );
    assert.deepEqual(parseControlGroups(apart.join('\n'))?.mounts, [
      '/cgroup/cpu',
      '/cgroup/memory',
      '/cgroup/pids',
      '/cgroup/cpuacct',
    ]);
  });
  test('version 2 is used if it is alone, and without either there are no limits', () => {
    assert.deepEqual(parseControlGroups(second), {
      version: 2,
      mounts: ['/sys/fs/cgroup/unified'],
    });
    assert.equal(parseControlGroups('proc /proc proc rw 0 0'), null);
  });
});

test('name servers on the host’s loopback are skipped, because machines can’t reach them', () => {
  const text = 'search x\nnameserver 127.0.0.53\nnameserver 192.0.2.53\nnameserver ::1\n';
  assert.deepEqual(parseNameservers(text), ['192.0.2.53']);
});

test('authorized keys with options are skipped, because the options are not implemented', () => {
  const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3tK2mKuuXyXrz0GhQxFWoBDLyX0d1M9CN7w0Jc8vXf';
  assert.equal(
    parseAuthorizedKeys(`${key} me\n# ${key}\ncommand="true" ${key}\nnonsense`).length,
    1,
  );
});

describe('the rules of a machine', () => {
  const subject = {
    id,
    ip: '127.77.254.1',
    privateIp: '10.77.254.1',
    sshPorts: [22],
    nameservers: ['192.0.2.53'],
    siblings: [],
  };
  test('an invalid network never reaches nftables', () => {
    const rule = { protocol: 'tcp', portRange: null, sourceNetwork: '0.0.0.0/0; drop' } as const;
    assert.throws(() => toRuleset(subject, [rule]), { failure: 'impossible' });
  });
  test('a port range also limits a rule for all protocols, unless it covers every port', () => {
    const ranged = (low: number, high: number) => {
      const portRange = [low, high] as const;
      return toRuleset(subject, [{ protocol: 'all', portRange, sourceNetwork: '192.0.2.0/24' }]);
    };
    const source = 'ip saddr 192.0.2.0/24';
    assert(ranged(80, 90).includes(`${source} meta l4proto { tcp, udp } th dport 80-90 accept\n`));
    assert(!ranged(80, 90).includes(`${source} accept`));
    assert(ranged(1, 65_535).includes(`${source} accept\n`));
  });
  test('every protocol is written in nftables syntax', () => {
    const text = toRuleset(subject, [
      { protocol: 'all', portRange: null, sourceNetwork: '192.0.2.0/24' },
      { protocol: 'icmp', portRange: null, sourceNetwork: '0.0.0.0/0' },
      { protocol: 'udp', portRange: [5, 9], sourceNetwork: '0.0.0.0/0' },
    ]);
    assert.match(
      text,
      /ip saddr 192\.0\.2\.0\/24 accept\n\s+meta l4proto icmp accept\n\s+udp dport 5-9 accept/,
    );
  });
});

test('the source filter allows the addresses that a rule for its port names', () => {
  const allows = (rule: Partial<InboundRule>, address: string | undefined) =>
    createSourceFilter(
      [{ protocol: 'tcp', portRange: [22, 22], sourceNetwork: '192.0.2.0/24', ...rule }],
      22,
    )(address);
  for (const address of ['192.0.2.9', '::ffff:192.0.2.9']) {
    assert(allows({}, address), address);
    assert(allows({ portRange: [20, 30] }, address));
    assert(allows({ protocol: 'all', portRange: null }, address));
    assert(allows({ sourceNetwork: '0.0.0.0/0' }, address));
    assert(allows({ sourceNetwork: '192.0.2.9' }, address));
    assert(!allows({ portRange: [23, 65_535] }, address));
    assert(!allows({ protocol: 'udp' }, address));
    assert(!allows({ protocol: 'icmp', portRange: null }, address));
    assert(!allows({ sourceNetwork: '192.0.2.8' }, address));
    assert(!createSourceFilter([], 22)(address));
  }
  for (const address of ['192.0.3.9', '::ffff:192.0.3.9', '::1', undefined]) {
    assert(!allows({}, address), String(address));
  }
});

test('the description claims only what the host enforces', () => {
  const host: SandboxHost = {
    mode: 'single',
    obstacle: null,
    canRoute: false,
    networkObstacle: 'No.',
    controlGroups: null,
    confine: null,
    confineInit: null,
    diskImages: false,
    nested: false,
    mappedBind: null,
    shell: '/bin/sh',
    script: null,
    sftpServer: null,
  };
  assert.match(
    describeIsolation(host),
    /no root, NO seccomp filter; no CPU, memory or process limits; disks checked/,
  );
  assert.equal(describeNetwork(host), 'NO network.');
  assert.match(describeIsolation({ ...host, obstacle: 'No.' }), /can't run here/);
  assert.equal(describeNetwork({ ...host, obstacle: 'No.' }), '');
  assert.match(describeIsolation({ ...host, mode: 'none' }), /^NOT ISOLATED/);
  const controlGroups = { version: 2 as const, mounts: [] };
  const mapped = { ...host, mode: 'mapped' as const };
  assert.match(describeIsolation(mapped), /root, SHARED ids, NO seccomp filter/);
  assert.equal(adviseHost(mapped).length, 4);
  assert.match(adviseHost(mapped)[0]!, /For the seccomp filter: .* without `noexec`/);
  assert.match(adviseHost(host)[0]!, /^Run the server as root/);
  const full = { ...mapped, mappedBind: '/bind', confineInit: '/confine', diskImages: true };
  assert.deepEqual(adviseHost({ ...full, controlGroups }), []);
  assert.match(
    describeIsolation(full),
    /their own root and ids, a seccomp filter; .* disk sizes enforced/,
  );
  for (const changes of [
    { mode: 'mapped' as const, controlGroups },
    { mode: 'mapped' as const, controlGroups, canRoute: true },
    { mode: 'none' as const },
    {},
  ]) {
    const all = { ...host, ...changes };
    const text = `${describeIsolation(all)} ${describeNetwork(all)}`;
    assert(text.length <= 200, `${text.length}: ${text}`);
  }
});

describe('user data', () => {
  /** True if a shell parses the script; nothing is run. */
  const parses = (script: string) => spawnSync('sh', ['-n'], { input: script }).status === 0;

  test('cloud-config becomes a valid shell script, whatever is quoted in it', () => {
    const script = toFirstBoot(
      [
        '#cloud-config',
        'packages: [nginx]',
        'write_files:',
        '  - path: "/tmp/it\'s here"',
        '    content: "$(touch /tmp/no) \'x\'"',
        '    permissions: "0640"',
        'runcmd:',
        '  - [echo, "a b", "it\'s"]',
        "  - echo 'two words' | cat",
        'growpart: {mode: auto}',
      ].join('\n'),
    );
    assert.ok(parses(script), script);
    assert.match(script, /package nginx was not installed/);
    assert.match(script, /"growpart" in the cloud-config is not supported/);
    assert.doesNotMatch(script, /\$\(touch/);
  });
  test('compressed content is decompressed within a bound', () => {
    const file = (content: Buffer) =>
      `#cloud-config\nwrite_files:\n  - {path: /f, encoding: gz+b64, content: ${content.toString('base64')}}\n`;
    const packed = toFirstBoot(file(gzipSync('hello')));
    assert.match(packed, new RegExp(Buffer.from('hello').toString('base64')));
    const bomb = toFirstBoot(file(gzipSync(Buffer.alloc(17 * 1024 * 1024))));
    assert.ok(bomb.includes('its content can'));
  });
  test('compressed files share one bound, and are not unpacked more than once', () => {
    const write = (encoding: string, content: Buffer) =>
      `- {path: /f, encoding: ${encoding}, content: ${content.toString('base64')}}\n`;
    const packed = gzipSync(Buffer.alloc(10 * 1024 * 1024));
    const script = toFirstBoot(
      `#cloud-config\nwrite_files:\n${write('gz+b64', packed)}${write('gz+b64', packed)}` +
        write('gz+gz+b64', gzipSync(gzipSync('twice'))),
    );
    assert.equal(script.match(/^base64 -d >/gm)?.length, 2, 'the user data and the first file');
    assert.equal(script.match(/was not written/g)?.length, 2);
  });
  test('user data that takes too much to read does not hold up the server', async () => {
    const names = Array.from({ length: 30_000 }, (_, number) => `k${number}: [[[[a, *a], *b]]]\n`);
    const hostile = `#cloud-config\n${names.join('')}`;
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    const script = await readFirstBoot(hostile);
    clearInterval(timer);
    assert.match(script, /not YAML|was skipped/);
    assert(turns > 20, `${turns}`);
    const many = await readFirstBoot(`#cloud-config\nruncmd:\n${'- a\n'.repeat(20_000)}`);
    assert.equal(many.match(/^sh -c 'a'$|^sh -c a$/gm)?.length, 20_000);
  });
  test('user data that is neither a script nor cloud-config is reported as skipped', () => {
    assert.match(toFirstBoot('hello'), /user data was skipped/);
    assert.match(toFirstBoot('#cloud-config\n- a list'), /not a mapping/);
    assert.match(toFirstBoot('#cloud-config\n{'), /not YAML/);
  });
});
