// A sandbox's network interface, as root: which traffic its rules allow in and out. The outside world is a
// network namespace on this host, so that no packet leaves it.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { interfaceOf } from '#cloud/drivers/sandbox/network/firewall-ruleset.ts';
import { sshOpen } from '#test/support/cloud/machine-spec.ts';
import {
  createFixture,
  type Fixture,
  type Launched,
  needsNetwork,
} from '#test/support/cloud/sandbox-fixture.ts';
import { run } from '#test/support/conformance/ssh-client.ts';
import { until } from '#test/support/until.ts';

const world = { space: `mrt${process.pid}`, device: `mrt${process.pid}`, ip: '198.51.100.2' };
const range = { loopback: '127.78', private: '10.78' };

describe("a sandbox's network", { skip: needsNetwork(), timeout: 300_000 }, () => {
  let fixture: Fixture;
  let machine: Launched;
  const gateway = `${range.private}.0.1`;
  const inside = async (command: string) => (await fixture.client.ssh(machine, command)).stdout;
  const serve = (port: number) =>
    `setsid perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(LocalPort=>${port},Listen=>5,` +
    `ReuseAddr=>1);while($c=$l->accept){print $c $c->peerhost;close $c}' >/dev/null 2>&1 </dev/null &`;
  const ask = (address: string, port: number) =>
    `curl -s --http0.9 -m 1 http://${address}:${port}/`;
  /** Retries, because a busy computer may take longer than one request's timeout. */
  const reaches = (expected: string, request: () => Promise<string>) =>
    until(`a response from ${expected}`, async () => (await request()) === expected);
  const serveInside = async (ports: readonly number[]) => {
    for (const port of ports) {
      await inside(serve(port));
      await reaches('127.0.0.1', () => inside(ask('127.0.0.1', port)));
    }
  };
  const fromHost = async (port: number, address = machine.privateIp) =>
    (await run('sh', ['-c', ask(address, port)])).stdout;
  const fromWorld = async (command: string) =>
    (await run('ip', ['netns', 'exec', world.space, 'sh', '-c', command])).stdout;

  before(async () => {
    const { space, device, ip } = world;
    const commands = [
      // Packets to a removed machine must not leave through the uplink.
      `ip route add unreachable ${range.private}.0.0/16 metric 9999`,
      `ip netns add ${space}`,
      `ip link add ${device} type veth peer name eth0 netns ${space}`,
      `ip addr add 198.51.100.1/24 dev ${device}`,
      `ip link set ${device} up`,
      `ip -n ${space} addr add ${ip}/24 dev eth0`,
      `ip -n ${space} link set eth0 up`,
      `ip -n ${space} link set lo up`,
      `ip -n ${space} route add default via 198.51.100.1`,
      `sysctl -qw net.ipv4.conf.${device}.forwarding=1 || echo 1 > /proc/sys/net/ipv4/conf/${device}/forwarding`,
    ];
    for (const command of commands) {
      const answer = await run('sh', ['-c', command]);
      assert.equal(answer.code, 0, `${command}: ${answer.stderr}`);
    }
    await fromWorld(serve(8080));
    fixture = await createFixture({ addresses: range });
    machine = await fixture.launch({
      firewall: [
        sshOpen,
        { protocol: 'tcp', portRange: [7000, 7001], sourceNetwork: '0.0.0.0/0' },
        { protocol: 'tcp', portRange: [7002, 7002], sourceNetwork: '192.0.2.77/32' },
        { protocol: 'all', portRange: [7004, 7005], sourceNetwork: '0.0.0.0/0' },
        { protocol: 'tcp', portRange: [7006, 7006], sourceNetwork: '127.0.0.0/8' },
      ],
    });
    await serveInside([7000, 7002, 7003, 7004, 7006]);
  });
  after(async () => {
    await fixture?.close();
    const pids = (await run('ip', ['netns', 'pids', world.space])).stdout.split('\n');
    for (const pid of pids.filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
    await run('ip', ['netns', 'delete', world.space]);
    await run('ip', ['link', 'delete', world.device]);
    await run('ip', ['route', 'del', 'unreachable', `${range.private}.0.0/16`]);
  });

  test('outbound connections reach the world from the address of the host', async () => {
    await reaches('198.51.100.1', () => inside(ask(world.ip, 8080)));
  });

  test('packets from a spoofed address are dropped', async () => {
    const spoof = '10.78.250.250';
    const command =
      `sudo ip addr add ${spoof}/32 dev eth0; curl -s --http0.9 -m 1 --interface ${spoof} ` +
      `http://${world.ip}:8080/; sudo ip addr del ${spoof}/32 dev eth0`;
    assert.equal(await inside(command), '');
  });

  test('only the ports and sources of the rules are allowed in', async () => {
    await reaches(gateway, () => fromHost(7000));
    assert.equal(await fromHost(7002), '');
    assert.equal(await fromHost(7003), '');
    await reaches(gateway, () => fromHost(7004));
    await reaches(world.ip, () => fromWorld(ask(machine.privateIp, 7000)));
    assert.equal(await fromWorld(ask(machine.privateIp, 7003)), '');
  });

  test('the same rules apply at the loopback address, where ssh is', async () => {
    const at = (port: number) => fromHost(port, machine.ip);
    await reaches(gateway, () => at(7000));
    assert.equal(await at(7002), '');
    assert.equal(await at(7003), '');
    await reaches(gateway, () => at(7004));
    // The rule is applied to the client's own address, not to the gateway's that the machine sees.
    await reaches(gateway, () => at(7006));
    assert.equal(await fromHost(7006), '');
  });

  test('a host server on all addresses does not respond at the machine’s address', async (context) => {
    const server = createServer((_request, response) => response.end('the host'));
    context.after(() => server.close());
    await once(server.listen(7007, '0.0.0.0'), 'listening');
    assert.equal(await fromHost(7007, machine.ip), '');
    await reaches('the host', () => fromHost(7007, '127.0.0.1'));
  });

  test("a machine fills no entries of the host's ARP table and finds no other address of the host", async () => {
    const requests = [
      ['11.0.0.1', gateway],
      ['11.0.0.2', gateway],
      [machine.privateIp, '198.51.100.1'],
      [machine.privateIp, '127.0.0.1'],
      // Last, because its answer ends the program.
      [machine.privateIp, gateway],
    ];
    const program = `
      open(F, "/sys/class/net/eth0/ifindex"); my $index = <F>;
      socket(S, 17, 3, 0x0608) && bind(S, pack("SnlSCCa8", 17, 0x806, $index, 0, 0, 0, "")) || die $!;
      my $mac = pack("H12", "024d00000001");
      for (qw(${requests.map((pair) => pair.join('/')).join(' ')})) {
        my ($from, $to) = map { pack "C4", split /[.]/ } split "/";
        send(S, "\\xff" x 6 . $mac . pack("nnnCCn", 0x806, 1, 0x800, 6, 4, 1) . "$mac$from" . "\\0" x 6 . $to, 0);
      }
      while (defined recv(S, my $answer, 100, 0)) {
        my ($type, $from, $to) = unpack "x20 n x6 a4 x6 a4", $answer;
        my $pair = join "/", map { join ".", unpack "C4" } $to, $from;
        print "$pair\\n" if $type == 2;
        last if $type == 2 && $pair eq "${machine.privateIp}/${gateway}";
      }`;
    const answers = await inside(`sudo timeout 20 perl -e '${program}'`);
    assert.equal(answers, `${machine.privateIp}/${gateway}\n`);
    const device = interfaceOf(machine.id);
    const { stdout } = await run('ip', ['-4', 'neigh', 'show', 'dev', device]);
    assert.match(stdout, new RegExp(`^${machine.privateIp} lladdr \\S+ PERMANENT *\n$`));
  });

  test("the machine's root can't reach the host's loopback by changing routes", async (context) => {
    const listener = createSocket('udp4');
    context.after(() => listener.close());
    const heard: string[] = [];
    listener.on('message', (message) => heard.push(String(message)));
    listener.bind(0, '127.5.5.5');
    await once(listener, 'listening');
    const { port } = listener.address();
    const send =
      `perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Proto=>"udp",PeerAddr=>"127.5.5.5",` +
      `PeerPort=>${port})->send("hello") and print "sent"'`;
    await inside('sudo ip route del local 127.0.0.0/8 dev lo table local');
    await inside(`sudo ip route add 127.5.5.5/32 via ${range.private}.0.1`);
    assert.equal(await inside(send), 'sent');
    assert.equal(await inside(send), 'sent');
    assert.deepEqual(heard, []);
  });

  test('new rules apply at once and survive a restart', async () => {
    const rule = { protocol: 'tcp', portRange: [7003, 7003], sourceNetwork: '0.0.0.0/0' } as const;
    await fixture.driver.setFirewall({ ...machine.spec, firewall: [sshOpen, rule] });
    for (const address of [machine.privateIp, machine.ip]) {
      await reaches(gateway, () => fromHost(7003, address));
      assert.equal(await fromHost(7000, address), '');
    }
    await fixture.driver.restart({ ...machine.spec, firewall: [sshOpen, rule] });
    await serveInside([7000, 7003]);
    await reaches(gateway, () => fromHost(7003));
    assert.equal(await fromHost(7000), '');
    await reaches(gateway, () => fromHost(7003, machine.ip));
  });

  test("a cloud's metadata service and private networks can't be reached", async () => {
    const { stdout } = await run('nft', ['list', 'table', 'inet', `millrace_${machine.id}`]);
    assert.match(stdout, /169\.254\.0\.0\/16/);
    assert.equal(await inside(ask('169.254.169.254', 80)), '');
  });
});

test('without `ip` or `nft` machines have no network, and the host says what to install', {
  skip: needsNetwork(),
}, async () => {
  const program =
    `import { inspectHost } from '#cloud/drivers/sandbox/host.ts';` +
    `const wishes = { isolation: 'auto', nested: false };` +
    `const { canRoute, networkObstacle } = await inspectHost(process.argv[1], wishes);` +
    `console.log(JSON.stringify({ canRoute, networkObstacle }));`;
  /** Inspects this host in a mount namespace in which the programs are hidden. */
  const inspectWithout = async (...names: string[]) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-host-'));
    const hide = names.map(
      (name) => `mount --bind /dev/null "$(readlink -f "$(command -v ${name})")"`,
    );
    const script = `${hide.join(' && ')} && exec "$@"`;
    const node = [process.execPath, '--input-type=module', '-e', program, folder];
    const argv = ['-m', '--propagation', 'private', 'sh', '-c', script, 'sh', ...node];
    const { stdout, stderr } = await run('unshare', argv);
    rmSync(folder, { recursive: true, force: true });
    assert.notEqual(stdout, '', stderr);
    return JSON.parse(stdout);
  };
  const { canRoute, networkObstacle } = await inspectWithout('nft');
  assert.equal(canRoute, false);
  assert.match(
    networkObstacle,
    /no internet access .*, because `nft` is missing\. Run `apt-get install iproute2 nftables` or `dnf install/,
  );
  assert.match(
    (await inspectWithout('ip', 'nft')).networkObstacle,
    /because `ip` and `nft` are missing/,
  );
});
