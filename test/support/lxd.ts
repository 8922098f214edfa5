// A real LXD or Incus daemon for one test file: own folder, bridge and subnet, so that several runs don't
// meet. LXD unless MILLRACE_TEST_DAEMON says `incus`.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { missingProgram } from '../conformance/ssh-client.ts';
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

const flavours = {
  lxd: { daemon: 'lxd', client: 'lxd', init: ['init', '--preseed'], folderVariable: 'LXD_DIR' },
  incus: {
    daemon: 'incusd',
    client: 'incus',
    init: ['admin', 'init', '--preseed'],
    folderVariable: 'INCUS_DIR',
  },
} as const;

const flavour = flavours[process.env.MILLRACE_TEST_DAEMON === 'incus' ? 'incus' : 'lxd'];

const needed = ['dnsmasq', 'ip', 'nft', 'busybox', 'ssh', 'sshd', 'sudo', 'mkfs.btrfs', 'curl'];

/** Why tests that need the daemon are skipped, or false. */
export const noLxd: string | false =
  process.getuid?.() !== 0
    ? 'the daemon needs root'
    : missingProgram(flavour.daemon, flavour.client, ...needed);

export interface Lxd {
  readonly folder: string;
  readonly socket: string;
  readonly httpsUrl: string;
  readonly network: string;
  /** Managed by the daemon; the gateway is the bridge's own address. */
  readonly subnet: string;
  readonly gateway: string;
  /** Directories; can't tell usage. */
  readonly pool: string;
  /** Made on first use; tells usage and keeps quotas. */
  addBtrfsPool(): Promise<string>;
  /** One that the daemon doesn't manage, as an operator's own. */
  addPlainBridge(): Promise<{ network: string; subnet: string; gateway: string }>;
  importImage(tarball: string, alias: string): Promise<void>;
  request<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Without waiting for the end of what was begun. */
  begin<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
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
  let daemon: ChildProcess | undefined;

  // Packets to machines that are not there must not leave by the uplink.
  await execute('ip', ['route', 'replace', 'unreachable', subnet, 'metric', '9999']);

  async function start() {
    const log = join(folder, 'daemon.log');
    // In a mount namespace of its own: what it mounts goes with it, and uid 1000 may be mapped through.
    const script = `printf 'root:100000:65536\\nroot:1000:1\\n' >${folder}/subids
      mount --bind ${folder}/subids /etc/subuid && mount --bind ${folder}/subids /etc/subgid
      exec ${flavour.daemon} --group root --logfile=${log}`;
    daemon = spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script], {
      env: environment(folder),
      stdio: 'ignore',
    });
    await execute(flavour.daemon, ['waitready', '--timeout=60'], { env: environment(folder) });
  }

  async function ask(method: string, path: string, body?: unknown) {
    const data = body === undefined ? [] : ['-d', JSON.stringify(body)];
    const argv = ['-sS', '--unix-socket', socket, '-X', method, ...data, `http://lxd${path}`];
    const { stdout } = await execute('curl', argv, { maxBuffer: 64 * 1024 * 1024 });
    const answer = JSON.parse(stdout);
    if (answer.type === 'error') throw new Error(`${method} ${path}: ${answer.error}`);
    return answer;
  }

  async function request<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await ask(method, path, body);
    if (answer.type !== 'async') return answer.metadata;
    return request('GET', `/1.0/operations/${answer.metadata.id}/wait?timeout=60`);
  }

  try {
    await start();
    await initialise(folder, preseed(bridge, gateway, port));
  } catch (error) {
    await sweep(slot);
    throw error;
  }
  const lxd: Lxd = {
    folder,
    socket,
    httpsUrl: `https://127.0.0.1:${port}`,
    network: bridge,
    subnet,
    gateway,
    pool: 'default',
    start,
    request,
    begin: async (method, path, body) => (await ask(method, path, body)).metadata,
    async addBtrfsPool() {
      const config = { size: '3GiB' };
      await request('POST', '/1.0/storage-pools', { name: 'bt', driver: 'btrfs', config });
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
    async importImage(tarball, alias) {
      const argv = ['-sS', '--unix-socket', socket, '-X', 'POST'];
      const type = ['-H', 'Content-Type: application/octet-stream'];
      const url = 'http://lxd/1.0/images';
      const { stdout } = await execute('curl', [...argv, ...type, '-T', tarball, url]);
      const { id } = JSON.parse(stdout).metadata as { id: string };
      const done = await request<{ err: string; metadata: { fingerprint: string } }>(
        'GET',
        `/1.0/operations/${id}/wait?timeout=60`,
      );
      if (done.err) throw new Error(done.err);
      const target = done.metadata.fingerprint;
      await request('POST', '/1.0/images/aliases', { name: alias, target });
    },
    async kill() {
      daemon?.kill('SIGKILL');
      if (daemon) await exitOf(daemon);
    },
    async stop() {
      const shut = execute(flavour.daemon, ['shutdown', '--timeout=20'], {
        env: environment(folder),
      });
      await shut.catch(() => {});
      const patience = setTimeout(10_000, undefined, { ref: false });
      await Promise.race([daemon && exitOf(daemon), patience]);
      await sweep(slot);
    },
  };
  return lxd;
}

/** The proxy that answers nobody keeps it from asking the internet about instance types. */
function environment(folder: string): NodeJS.ProcessEnv {
  const nowhere = 'http://127.0.0.1:9';
  const { PATH, LD_LIBRARY_PATH } = process.env;
  const proxies = { HTTPS_PROXY: nowhere, HTTP_PROXY: nowhere };
  return { PATH, LD_LIBRARY_PATH, ...proxies, [flavour.folderVariable]: folder };
}

function exitOf(child: ChildProcess): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', resolve));
}

function preseed(bridge: string, gateway: string, port: number): string {
  return JSON.stringify({
    config: {
      'core.https_address': `127.0.0.1:${port}`,
      'core.proxy_https': 'http://127.0.0.1:9',
      'core.proxy_ignore_hosts': '127.0.0.1',
      'images.auto_update_interval': '0',
    },
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
  });
}

async function initialise(folder: string, text: string) {
  const child = spawn(flavour.client, flavour.init, { env: environment(folder), stdio: 'pipe' });
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  child.stdin.end(text);
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`the daemon was not set up: ${complaint}`);
}
