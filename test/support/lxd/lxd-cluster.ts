// A real LXD or Incus cluster for one test file: a daemon per member, each in a network namespace of its own
// as on a computer of its own, their machines on one shared network.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  callsOver,
  environment,
  exitOf,
  flavour,
  initialise,
  type LxdCalls,
  mapUsers,
  quiet,
  shutDown,
  waitReady,
} from './lxd-daemon.ts';
import { bridgeOf, namespaceOf, slotFolder, subnetOf, sweep, takeSlot } from './lxd-slot.ts';
import { northbound, startOvn, uplinkBridge } from './ovn.ts';

const execute = promisify(execFile);

export interface ClusterMember extends LxdCalls {
  readonly name: string;
  readonly socket: string;
  readonly url: string;
  /** As a crash of its daemon: machines run on. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface Cluster {
  readonly folder: string;
  readonly members: readonly ClusterMember[];
  /** A bridge on every member, which the daemons don't manage. */
  readonly network: string;
  readonly addresses: { subnet: string; gateway: string; first: string; last: string };
  stop(): Promise<void>;
}

/** Name of the network for `ovn_uplink`. */
export const ovnUplink = 'uplink';

/** The daemon takes no less. */
const offlineSeconds = 11;

/** With OVN, the cluster has an uplink for OVN networks. */
export async function startCluster(size: number, ovn = false): Promise<Cluster> {
  const slot = await takeSlot();
  const subnet = subnetOf(slot);
  const at = (host: number) => `10.77.0.${slot * 32 + host}`;
  const indexes = Array.from({ length: size }, (_, index) => index + 1);
  const members = indexes.map((index) => createMember(slot, index, at(1 + index)));
  try {
    await execute('ip', ['route', 'replace', 'unreachable', subnet, 'metric', '9999']);
    await execute('ip', ['link', 'add', bridgeOf(slot), 'type', 'bridge']);
    await execute('ip', ['addr', 'add', `${at(1)}/27`, 'dev', bridgeOf(slot)]);
    await execute('ip', ['link', 'set', bridgeOf(slot), 'up']);
    await Promise.all(
      members.map((_, index) => connect(slot, index + 1, `${at(2 + index)}/27`, at(1))),
    );
    const switches = members.map(({ folder }, index) => ({
      namespace: namespaceOf(slot, index + 1),
      folder,
      ip: at(2 + index),
    }));
    if (ovn) await startOvn(switches, bridgeOf(slot));
    await Promise.all(members.map((member) => member.start()));
    await form(members);
    if (ovn) await addUplink(members, northbound(switches[0]!));
  } catch (error) {
    await sweep(slot);
    throw error;
  }
  return {
    folder: slotFolder(slot),
    members,
    network: 'br0',
    addresses: { subnet, gateway: at(1), first: at(2 + size), last: at(30) },
    async stop() {
      // The last members have no quorum left and are ended by the sweep.
      await Promise.all(members.map((member) => member.shutDown()));
      await sweep(slot);
    },
  };
}

type Member = ClusterMember & { readonly folder: string; shutDown(): Promise<void> };

function createMember(slot: number, index: number, ip: string): Member {
  const folder = join(slotFolder(slot), `n${index}`);
  const socket = join(folder, 'unix.socket');
  const cgroups = join(slotFolder(slot), `cgroups-${index}`);
  let daemon: ChildProcess | undefined;
  for (const one of [folder, cgroups]) mkdirSync(one, { recursive: true, mode: 0o711 });
  // sysfs shows the network namespace it was mounted in, and a new one has no control groups.
  const script = `mount --rbind /sys/fs/cgroup ${cgroups} && mount -t sysfs sysfs /sys &&
    mount --rbind ${cgroups} /sys/fs/cgroup && umount -l ${cgroups} || exit 1
    ${mapUsers(folder)}
    exec ${flavour.daemon} --group root --logfile=${join(folder, 'daemon.log')}`;
  return {
    ...callsOver(socket),
    name: `n${index}`,
    folder,
    socket,
    url: `https://${ip}:8443`,
    async start() {
      const inside = ['unshare', '-m', '--propagation', 'private', 'sh', '-c', script];
      daemon = spawn('nsenter', [`--net=/run/netns/${namespaceOf(slot, index)}`, ...inside], {
        env: environment(folder),
        stdio: 'ignore',
      });
      await waitReady(folder);
    },
    async kill() {
      daemon?.kill('SIGKILL');
      if (daemon) await exitOf(daemon);
    },
    async shutDown() {
      const patience = setTimeout(10_000, undefined, { ref: false });
      await Promise.race([shutDown(folder), patience]);
    },
  };
}

/** The member's uplink is in a bridge, which its machines are on too. */
async function connect(slot: number, index: number, address: string, gateway: string) {
  const namespace = namespaceOf(slot, index);
  const uplink = `${bridgeOf(slot)}v${index}`;
  await execute('ip', ['netns', 'add', namespace]);
  const peer = ['peer', 'name', 'eth0', 'netns', namespace];
  await execute('ip', ['link', 'add', uplink, 'type', 'veth', ...peer]);
  await execute('ip', ['link', 'set', uplink, 'master', bridgeOf(slot), 'up']);
  for (const line of [
    'link set lo up',
    'link add br0 type bridge',
    'link set eth0 master br0 up',
    `addr add ${address} dev br0`,
    'link set br0 up',
    `route add default via ${gateway}`,
  ]) {
    await execute('ip', ['-n', namespace, ...line.split(' ')]);
  }
}

async function form(members: readonly Member[]) {
  const [first, ...others] = members as [Member, ...Member[]];
  const addressOf = ({ url }: Member) => new URL(url).host;
  await initialise(first.folder, {
    config: { 'core.https_address': addressOf(first), ...quiet },
    cluster: { server_name: first.name, enabled: true },
    storage_pools: [{ name: 'default', driver: 'dir' }],
    profiles: [{ name: 'default', devices: {} }],
  });
  // Not in the preseed: before there is a cluster, LXD 5.0.2 dies of it.
  const config = { 'cluster.offline_threshold': `${offlineSeconds}` };
  await first.request('PATCH', '/1.0', { config });
  for (const member of others) {
    const { metadata } = await first.begin<{ metadata: Record<string, unknown> }>(
      'POST',
      '/1.0/cluster/members',
      { server_name: member.name },
    );
    const { serverName: server_name, expiresAt: expires_at, ...rest } = metadata;
    const token = { server_name, expires_at, ...rest };
    await initialise(member.folder, {
      cluster: {
        enabled: true,
        server_name: member.name,
        server_address: addressOf(member),
        cluster_token: Buffer.from(JSON.stringify(token)).toString('base64'),
        member_config: [{ entity: 'storage-pool', name: 'default', key: 'source', value: '' }],
      },
    });
  }
}

async function addUplink(members: readonly Member[], northbound: string) {
  const [first] = members as [Member];
  const config = { 'network.ovn.northbound_connection': northbound };
  await first.request('PATCH', '/1.0', { config });
  const uplink = { name: ovnUplink, type: 'physical' };
  for (const { name } of members) {
    const parent = { ...uplink, config: { parent: uplinkBridge } };
    await first.request('POST', `/1.0/networks?target=${name}`, parent);
  }
  await first.request('POST', '/1.0/networks', uplink);
}
