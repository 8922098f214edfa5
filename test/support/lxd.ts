// A real LXD daemon for one test file: own folder, bridge and subnet, taken from a few numbered slots so
// that several runs don't meet. What a killed run left in its slot is swept by the next one that takes it.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { missingProgram } from '../conformance/ssh-client.ts';

const execute = promisify(execFile);

/** Why tests that need the daemon are skipped, or false. */
export const noLxd: string | false =
  process.getuid?.() !== 0
    ? 'LXD needs root'
    : missingProgram('lxd', 'dnsmasq', 'ip', 'nft', 'busybox', 'ssh', 'sshd', 'sudo', 'mkfs.btrfs');

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
  importImage(tarball: string, alias: string): Promise<void>;
  request<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Without waiting for the end of what was begun. */
  begin<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** As a crash of the daemon: machines run on. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** The lowest addresses belong to the sandboxes' gateway; nothing of ours is handed out above. */
const slots = [1, 2, 3, 4, 5, 6, 7];
const leaseSeconds = 60;

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
    const log = join(folder, 'lxd.log');
    // In a mount namespace of its own: what it mounts goes with it, and uid 1000 may be mapped through.
    const script = `printf 'root:100000:65536\\nroot:1000:1\\n' >${folder}/subids
      mount --bind ${folder}/subids /etc/subuid && mount --bind ${folder}/subids /etc/subgid
      exec lxd --group root --logfile=${log}`;
    daemon = spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script], {
      env: environment(folder),
      stdio: 'ignore',
    });
    await execute('lxd', ['waitready', '--timeout=60'], { env: environment(folder) });
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

  async function ended(child: ChildProcess, signal: NodeJS.Signals) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }

  await start();
  await initialise(folder, preseed(bridge, gateway, port));
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
      const config = { size: '1GiB' };
      await request('POST', '/1.0/storage-pools', { name: 'bt', driver: 'btrfs', config });
      return 'bt';
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
      if (daemon) await ended(daemon, 'SIGKILL');
    },
    async stop() {
      const shut = execute('lxd', ['shutdown', '--timeout=20'], { env: environment(folder) });
      await shut.catch(() => {});
      await Promise.race([
        daemon && ended(daemon, 'SIGCONT'),
        setTimeout(10_000, 0, { ref: false }),
      ]);
      if (daemon) await ended(daemon, 'SIGKILL');
      await sweep(slot);
    },
  };
  return lxd;
}

const slotFolder = (slot: number) => join(tmpdir(), `millrace-lxd-${slot}`);
const bridgeOf = (slot: number) => `mrlxd${slot}`;
const subnetOf = (slot: number) => `10.77.0.${slot * 32}/27`;

/** The proxy that answers nobody keeps it from asking the internet about instance types. */
function environment(folder: string): NodeJS.ProcessEnv {
  const nowhere = 'http://127.0.0.1:9';
  return { PATH: process.env.PATH, LXD_DIR: folder, HTTPS_PROXY: nowhere, HTTP_PROXY: nowhere };
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
  const child = spawn('lxd', ['init', '--preseed'], { env: environment(folder), stdio: 'pipe' });
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  child.stdin.end(text);
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`lxd init: ${complaint}`);
}

/** A slot is a folder with the pid and start time of its taker. */
async function takeSlot(): Promise<number> {
  const deadline = Date.now() + leaseSeconds * 1000;
  for (;;) {
    for (const slot of slots) {
      const lock = `${slotFolder(slot)}.lock`;
      const holder = existsSync(lock) ? readFileSync(lock, 'utf8') : '';
      if (holder !== '' && identityOf(Number.parseInt(holder, 10)) === holder) continue;
      rmSync(lock, { force: true });
      try {
        writeFileSync(lock, identityOf(process.pid), { flag: 'wx' });
      } catch {
        continue;
      }
      await sweep(slot, false);
      mkdirSync(slotFolder(slot), { recursive: true, mode: 0o711 });
      return slot;
    }
    if (Date.now() > deadline) throw new Error('every slot for an LXD daemon is taken');
    await setTimeout(500);
  }
}

/** A pid may come again; with its start time it doesn't. */
function identityOf(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[0] === 'Z' ? '' : `${pid} ${fields[19]}`;
  } catch {
    return '';
  }
}

/** Ends and removes whatever bears the slot's folder or bridge; silent when there is nothing. */
async function sweep(slot: number, release = true) {
  const folder = slotFolder(slot);
  for (let round = 0; round < 50; round += 1) {
    const found = processesOf(folder);
    if (found.length === 0) break;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended meanwhile.
      }
    }
    await setTimeout(100);
  }
  const quietly = (program: string, ...argv: string[]) => execute(program, argv).catch(() => {});
  await quietly('ip', 'link', 'delete', bridgeOf(slot));
  await quietly('ip', 'route', 'delete', 'unreachable', subnetOf(slot), 'metric', '9999');
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const below = mounts
    .map((line) => line.split(' ')[1] ?? '')
    .filter((at) => at.startsWith(folder));
  for (const at of below.reverse()) await quietly('umount', '-l', at);
  await quietly(
    'sh',
    '-c',
    `nft list tables | grep -q 'inet lxd' && ${deleteChains(bridgeOf(slot))}`,
  );
  rmSync(folder, { recursive: true, force: true });
  if (release) rmSync(`${folder}.lock`, { force: true });
}

function deleteChains(bridge: string): string {
  const names = `nft list table inet lxd | sed -n 's/^\\tchain \\(.*\\.${bridge}\\) {/\\1/p'`;
  return `${names} | while read -r c; do nft flush chain inet lxd "$c"; done; ${names} | while read -r c; do nft delete chain inet lxd "$c"; done`;
}

/** The daemon, its dnsmasq and its containers' monitors all have the folder in command or environment. */
function processesOf(folder: string): number[] {
  const bears = new RegExp(`${folder}(/|\\0|\\s|$)`);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const read = (file: string) => {
        try {
          return readFileSync(`/proc/${name}/${file}`, 'utf8');
        } catch {
          return '';
        }
      };
      if (/^\d+ \(.*\) Z/s.test(read('stat'))) return false;
      return bears.test(read('cmdline')) || bears.test(read('environ'));
    })
    .map(Number);
}
