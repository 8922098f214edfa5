// OVN for the members of a test cluster, without kernel modules: Open vSwitch switches packets in user space. Each
// member has its own switch in its network namespace, and the first has the databases.

import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { needs } from '#test/support/programs.ts';

const execute = promisify(execFile);

/** Returns why tests that need OVN are skipped, or false. Only these need its programs: those of one daemon run without. */
export const needsOvn = (): string | false =>
  needs(
    ...['ovsdb-tool', 'ovsdb-server', 'ovs-vsctl', 'ovs-vswitchd'],
    ...['ovn-northd', 'ovn-nbctl', 'ovn-controller', 'ethtool'],
  );

/** The bridge that is the uplink of the networks of accounts on every member. It leads nowhere. */
export const uplinkBridge = 'mruplink';

export interface OvnMember {
  readonly namespace: string;
  readonly folder: string;
  /** Where the other members reach it. */
  readonly ip: string;
}

/** Where Open vSwitch's and OVN's programs look for each other. */
export const ovnEnvironment = (folder: string) => ({
  OVS_RUNDIR: join(folder, 'ovs'),
  OVN_RUNDIR: join(folder, 'ovs'),
});

export const northbound = (first: OvnMember) => `tcp:${first.ip}:6641`;

/** Starts the switch of every member. `bridge` is one of the host, which carries the packets between them. */
export async function startOvn(members: readonly OvnMember[], bridge: string): Promise<void> {
  const [first] = members as [OvnMember];
  for (const { folder } of members) mkdirSync(join(folder, 'ovs'), { recursive: true });
  await startDatabases(first);
  await Promise.all(members.map((member, index) => startSwitch(member, index + 1, first, bridge)));
}

const inside = ({ namespace, folder }: OvnMember, program: string, ...argv: string[]) =>
  execute('ip', ['netns', 'exec', namespace, program, ...argv], {
    env: { PATH: process.env.PATH, ...ovnEnvironment(folder) },
  });

async function startDatabases(first: OvnMember) {
  const at = (name: string) => join(first.folder, 'ovs', name);
  for (const [name, port] of [
    ['nb', 6641],
    ['sb', 6642],
  ] as const) {
    await execute('ovsdb-tool', [
      'create',
      at(`${name}.db`),
      `/usr/share/ovn/ovn-${name}.ovsschema`,
    ]);
    await inside(
      first,
      'ovsdb-server',
      at(`${name}.db`),
      `--remote=punix:${at(`ovn${name}_db.sock`)}`,
      `--remote=ptcp:${port}:${first.ip}`,
      `--pidfile=${at(`${name}.pid`)}`,
      `--unixctl=${at(`${name}.ctl`)}`,
      `--log-file=${at(`${name}.log`)}`,
      '--detach',
    );
  }
  await inside(first, 'ovn-northd', '--detach', '--pidfile', `--log-file=${at('northd.log')}`);
}

async function startSwitch(member: OvnMember, index: number, first: OvnMember, bridge: string) {
  const at = (name: string) => join(member.folder, 'ovs', name);
  const daemon = (name: string, ...argv: string[]) =>
    inside(member, name, ...argv, '--detach', '--pidfile', `--log-file=${at(`${name}.log`)}`);
  const underlay = `192.168.90.${index}`;
  const uplink = `${bridge}u${index}`;
  const peer = ['peer', 'name', 'under0', 'netns', member.namespace];
  await execute('ip', ['link', 'add', uplink, 'type', 'veth', ...peer]);
  await execute('ip', ['link', 'set', uplink, 'master', bridge, 'up']);
  await execute('ovsdb-tool', [
    'create',
    at('conf.db'),
    '/usr/share/openvswitch/vswitch.ovsschema',
  ]);
  await daemon('ovsdb-server', at('conf.db'), `--remote=punix:${at('db.sock')}`);
  await inside(member, 'ovs-vsctl', '--no-wait', 'init');
  await daemon('ovs-vswitchd');
  const settings = {
    'system-id': `n${index}`,
    'ovn-encap-type': 'geneve',
    'ovn-encap-ip': underlay,
    'ovn-remote': `tcp:${first.ip}:6642`,
    'ovn-bridge-datapath-type': 'netdev',
  };
  const ids = Object.entries(settings).map(([key, value]) => `external-ids:${key}=${value}`);
  await inside(member, 'ovs-vsctl', 'set', 'open_vswitch', '.', ...ids);
  // Tunnels of the userspace datapath need an address on one of its own bridges.
  for (const name of ['under', uplinkBridge]) {
    const type = ['--', 'set', 'bridge', name, 'datapath_type=netdev'];
    await inside(member, 'ovs-vsctl', 'add-br', name, ...type);
  }
  await inside(member, 'ovs-vsctl', 'add-port', 'under', 'under0');
  for (const line of [
    'link set under0 up',
    `addr add ${underlay}/24 dev under`,
    'link set under up',
    `link set ${uplinkBridge} up`,
  ]) {
    await execute('ip', ['-n', member.namespace, ...line.split(' ')]);
  }
  await daemon('ovn-controller');
}
