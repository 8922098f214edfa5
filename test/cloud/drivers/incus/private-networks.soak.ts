// Private networks on a real cluster of two with OVN: machines of one account reach each other on different nodes,
// machines of another account reach none of them, whatever address they take, and nothing is left behind.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { MachineSpec, MachineState } from '#cloud/drivers/driver.ts';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import { buildHostImage, smallImage } from '#cloud/drivers/incus/images/image-recipe.ts';
import { createIncusDriver, type IncusDriver } from '#cloud/drivers/incus/incus.ts';
import { instanceName } from '#cloud/drivers/incus/machine/instance.ts';
import type { HostChecks } from '#cloud/hosts/schema.ts';
import { newMachineSpec } from '#test/support/cloud/machine-spec.ts';
import { createSshClient, type SshClient } from '#test/support/conformance/ssh-client.ts';
import {
  type Cluster,
  type ClusterMember,
  ovnUplink,
  startCluster,
} from '#test/support/lxd/lxd-cluster.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { needsOvn } from '#test/support/lxd/ovn.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

type Machine = Extract<MachineState, { state: 'running' }> & { readonly id: string };

const [alice, bob] = ['a', 'b'].map((letter) => letter.repeat(32)) as [string, string];

describe('private networks of accounts', { skip: noLxd || needsOvn(), timeout: 240_000 }, () => {
  let cluster: Cluster;
  let options: IncusOptions;
  let driver: IncusDriver;
  let ssh: SshClient;
  const drivers: IncusDriver[] = [];

  before(async () => {
    cluster = await startCluster(2, true);
    const { folder, network, addresses } = cluster;
    await first().importImage(await buildHostImage(`${folder}/image`), smallImage);
    ssh = createSshClient();
    options = {
      endpoint: { url: `unix:${first().socket}` },
      owner: randomBytes(16).toString('hex'),
      network,
      addresses,
      ovnUplink,
    };
    driver = await open();
  });
  after(async () => {
    for (const one of drivers) await one.close();
    ssh?.close();
    await cluster?.stop();
  });

  const first = () => cluster.members[0] as ClusterMember;
  const open = async (settings: IncusOptions = options) => {
    const opened = await createIncusDriver(settings);
    drivers.push(opened);
    return opened;
  };
  /** The server hands out the addresses of the bridge. Two drivers without it might choose the same one. */
  let lastAddress = 0;
  const nextAddress = () => {
    const [, subnet, number] = /^(.*\.)(\d+)$/.exec(cluster.addresses.first) ?? [];
    lastAddress += 1;
    return `${subnet}${Number(number) + lastAddress}`;
  };
  const specFor = (node: string, account: string): MachineSpec =>
    newMachineSpec(ssh.publicKey, {
      ...{ storageGib: 1, firewall: [], node, account },
      ip: nextAddress(),
    });
  const launch = async (node: string, account: string, by = driver): Promise<Machine> => {
    const spec = specFor(node, account);
    await by.launch(spec);
    let state: MachineState = { state: 'absent' };
    await until('it runs', async () => {
      state = await by.inspect(spec.id);
      return state.state === 'running';
    });
    await fillChecksums(spec.id);
    return { ...(state as unknown as Machine), id: spec.id };
  };
  /** A virtual interface leaves checksums to hardware, which the switch in user space is not. */
  const fillChecksums = async (id: string) => {
    const path = `/1.0/instances/${instanceName(id)}/state`;
    const { pid, network } = await first().request<{ pid: number; network: object }>('GET', path);
    if (!('eth1' in network)) return;
    const namespace = `--net=/proc/${pid}/ns/net`;
    execFileSync('nsenter', [namespace, 'ethtool', '-K', 'eth1', 'tx', 'off']);
  };
  const output = async (at: Machine, command: string) => {
    const { stdout, stderr } = await ssh.ssh(at, command);
    return stdout.trim() || stderr;
  };
  /** By the private address, in an ssh session from the other machine. */
  const outputFrom = async (from: Machine, to: Machine, command: string) => {
    const jump = `ssh ${ssh.options(from).join(' ')} -W %h:%p ubuntu@${from.ip}`;
    const at = { ip: to.privateIp, sshPort: to.sshPort };
    return (await ssh.ssh(at, '-o', `ProxyCommand=${jump}`, command)).stdout.trim();
  };
  const greets = async (from: Machine, address: string, trick = 'true') => {
    const greeting = `timeout 2 bash -c 'exec 3<>/dev/tcp/${address}/22; head -c 4 <&3'`;
    return (await output(from, `sudo sh -c '${trick}' && ${greeting}`)) === 'SSH-';
  };
  const networks = async () => {
    const all = await first().request<string[]>('GET', '/1.0/networks');
    return all.filter((path) => path.includes(`millrace-${options.owner.slice(0, 12)}`));
  };

  test('machines of one account reach each other on different nodes, and of another never', async () => {
    // Two servers create the account's network at once.
    const other = await open();
    const [one, two, stranger] = await Promise.all([
      launch('n1', alice),
      launch('n2', alice, other),
      launch('n2', bob),
    ]);
    assert.equal((await networks()).length, 2);
    assert.notEqual(one.privateIp, one.ip);
    assert.equal(await outputFrom(one, two, 'hostname'), await output(two, 'hostname'));
    const large = 'head -c 4000000 /dev/zero | wc -c';
    assert.equal(await outputFrom(two, one, large), '4000000');
    assert.match(await output(one, 'ip route'), /^default via \S+ dev eth0/);

    const gateway = stranger.privateIp.replace(/\d+$/, '1');
    assert.match(
      await output(stranger, `sudo ping -c 1 -W 5 -I eth1 ${gateway}`),
      /1 packets received/,
    );
    assert(await greets(two, one.privateIp));
    assert(!(await greets(stranger, one.privateIp)));
    const tricks = [
      // The address of a sibling, which another machine has at the same time.
      `ip addr add ${two.privateIp}/24 dev eth1`,
      // Its hardware address as well, and no question for that of the other.
      `ip link set eth1 down; ip link set eth1 address ${await macOf(two)}; ip link set eth1 up;
       ip neigh replace ${one.privateIp} lladdr ${await macOf(one)} dev eth1`,
      // By the router of its own network.
      `ip addr del ${two.privateIp}/24 dev eth1; ip neigh flush dev eth1;
       ip route replace ${one.privateIp} via ${gateway} dev eth1`,
    ];
    for (const trick of tricks) {
      const [strangers, siblings] = await Promise.all([
        greets(stranger, one.privateIp, trick),
        greets(two, one.privateIp),
      ]);
      assert.deepEqual({ strangers, siblings }, { strangers: false, siblings: true }, trick);
    }
  });

  const macOf = (machine: Machine) => output(machine, 'cat /sys/class/net/eth1/address');

  test('a machine that was there before keeps its address', async () => {
    const { ovnUplink: _, ...formerOptions } = options;
    const former = await launch('n1', alice, await open(formerOptions));
    const state = await driver.inspect(former.id);
    assert(state.state === 'running' && state.privateIp === former.ip);
    await driver.terminate(former.id);
  });

  test('networks that no machine is on any more are removed', async () => {
    const [last, ...others] = await driver.list();
    for (const id of others) await driver.terminate(id);
    await driver.sweepNetworks?.();
    await driver.sweepNetworks?.();
    assert.equal((await networks()).length, 1);
    await driver.terminate(last!);
    // A launch that was killed may leave a network. The next server removes it.
    const next = await open();
    await next.sweepNetworks?.();
    assert.equal((await networks()).length, 1, 'a launch may be about to use it');
    await next.sweepNetworks?.();
    assert.deepEqual(await networks(), []);
  });

  test('the first machine of an account waits for all nodes', async () => {
    const second = cluster.members[1] as ClusterMember;
    const spec = specFor('n1', bob);
    assert.equal(await driver.prepare?.(spec), null);
    await second.kill();
    await until('n2 is missed', async () =>
      /^waiting for n2: /.test((await driver.prepare?.(spec)) ?? ''),
    );
    await assert.rejects(driver.launch(spec), /waiting for n2/);
    assert.deepEqual(await networks(), []);
    // A server that saw n2 before it died leaves half a network.
    const name = `millrace-${options.owner.slice(0, 12)}-${bob}`;
    const half = { name, type: 'ovn', config: { network: ovnUplink, 'ipv6.address': 'none' } };
    await assert.rejects(first().request('POST', '/1.0/networks', half));
    for (const _ of ['seen', 'kept']) await driver.sweepNetworks?.();
    assert.equal((await networks()).length, 1);
    await second.start();
    await until('n2 is back', async () => (await driver.prepare?.(spec)) === null);
    await driver.sweepNetworks?.();
    assert.deepEqual(await networks(), []);
    await driver.launch(spec);
    assert.equal((await networks()).length, 1);
  });

  test('a host check says what is wrong with the uplink, and the command that fixes it', async () => {
    const { network, addresses } = cluster;
    const url = `unix:${first().socket}`;
    const host = { region: 'us-east-1', url, network, addresses };
    const hosts = [
      { name: 'right', ovn_uplink: ovnUplink, ...host },
      { name: 'missing', ovn_uplink: 'nowhere', ...host },
    ];
    const server = await startTestServer({ config: { cloud: { driver: 'none', hosts } } });
    try {
      const owner = await server.join();
      const check = async (name: string) => {
        const response = await owner(`/dashboard/api/hosts/${name}/check`, { json: {} });
        const { checks } = (await response.json()) as HostChecks;
        return checks.find((one) => one.name === 'network')!;
      };
      assert.match((await check('right')).message, /Accounts get private networks on "uplink"/);
      const missing = await check('missing');
      assert(!missing.ok);
      assert.match(missing.message, /`lxc network create nowhere --type=physical parent=/);
      const gateway = { config: { 'ipv4.gateway': '192.168.91.1/24' } };
      await first().request('PATCH', `/1.0/networks/${ovnUplink}`, gateway);
      const leading = await check('right');
      assert(!leading.ok);
      assert.match(leading.message, /`lxc network unset uplink ipv4.gateway`/);
    } finally {
      await server.stop();
    }
  });
});
