// A real LXD or Incus daemon for one test file: own folder, bridge and subnet, so that several runs don't
// meet.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
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
import {
  bridgeOf,
  plainBridgeOf,
  plainSubnetOf,
  slotFolder,
  subnetOf,
  sweep,
  takeSlot,
} from './lxd-slot.ts';

const execute = promisify(execFile);

export interface Lxd extends LxdCalls {
  readonly folder: string;
  readonly socket: string;
  readonly httpsUrl: string;
  readonly network: string;
  /** Managed by the daemon; the gateway is the bridge's own address. */
  readonly subnet: string;
  readonly gateway: string;
  /** Directories; reports no usage. */
  readonly pool: string;
  /** Made on first use; reports usage and keeps quotas. */
  addBtrfsPool(): Promise<string>;
  /** One that the daemon doesn't manage, as an operator's own. */
  addPlainBridge(): Promise<{ network: string; subnet: string; gateway: string }>;
  /** As a crash of the daemon: machines run on. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startLxd(): Promise<Lxd> {
  const slot = await takeSlot();
  const folder = slotFolder(slot);
  const bridge = bridgeOf(slot);
  const subnet = subnetOf(slot);
  const gateway = `10.77.0.${slot * 32 + 1}`;
  const port = 18_440 + slot;
  const socket = join(folder, 'unix.socket');
  const calls = callsOver(socket);
  let daemon: ChildProcess | undefined;

  // Packets to machines that are not there must not leave by the uplink.
  await execute('ip', ['route', 'replace', 'unreachable', subnet, 'metric', '9999']);

  async function start() {
    // In a mount namespace of its own: what it mounts goes with it.
    const script = `${mapUsers(folder)}
      exec ${flavour.daemon} --group root --logfile=${join(folder, 'daemon.log')}`;
    daemon = spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script], {
      env: environment(folder),
      stdio: 'ignore',
    });
    await waitReady(folder);
  }

  try {
    await start();
    await initialise(folder, preseed(bridge, gateway, port));
  } catch (error) {
    await sweep(slot);
    throw error;
  }
  return {
    ...calls,
    folder,
    socket,
    httpsUrl: `https://127.0.0.1:${port}`,
    network: bridge,
    subnet,
    gateway,
    pool: 'default',
    start,
    async addBtrfsPool() {
      const config = { size: '3GiB' };
      await calls.request('POST', '/1.0/storage-pools', { name: 'bt', driver: 'btrfs', config });
      return 'bt';
    },
    async addPlainBridge() {
      const network = plainBridgeOf(slot);
      const plain = plainSubnetOf(slot);
      const own = plain.replace(/(\d+)\/28$/, (_, low) => `${Number(low) + 1}`);
      await execute('ip', ['route', 'replace', 'unreachable', plain, 'metric', '9999']);
      await execute('ip', ['link', 'add', network, 'type', 'bridge']);
      await execute('ip', ['addr', 'add', `${own}/28`, 'dev', network]);
      await execute('ip', ['link', 'set', network, 'up']);
      return { network, subnet: plain, gateway: own };
    },
    async kill() {
      daemon?.kill('SIGKILL');
      if (daemon) await exitOf(daemon);
    },
    async stop() {
      await shutDown(folder);
      const patience = setTimeout(10_000, undefined, { ref: false });
      await Promise.race([daemon && exitOf(daemon), patience]);
      await sweep(slot);
    },
  };
}

function preseed(bridge: string, gateway: string, port: number): object {
  return {
    config: { 'core.https_address': `127.0.0.1:${port}`, ...quiet },
    storage_pools: [{ name: 'default', driver: 'dir' }],
    networks: [
      {
        name: bridge,
        type: 'bridge',
        config: {
          'ipv4.address': `${gateway}/27`,
          'ipv4.nat': 'false',
          'ipv6.address': 'none',
        },
      },
    ],
    profiles: [{ name: 'default', devices: {} }],
  };
}
