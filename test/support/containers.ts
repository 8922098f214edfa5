// Buildah and Podman with storage, mounts, processes and a network of their own, which all end with this process. Nothing
// of them is visible to the rest of the computer, whose firewall Podman would change.

import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { needs, skipFor, systemPath } from './programs.ts';
import { until } from './until.ts';

/** Podman's program for networks, which packages only recommend. */
const networks = ['/usr/lib/podman/netavark', '/usr/libexec/podman/netavark'];

/** Lets this process run containers. Returns why tests of them are skipped, or false. */
export function needsContainers(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return skipFor('it needs root on Linux');
  const missing = needs('buildah', 'podman', 'crun', 'iptables', 'ip', 'mmdebstrap');
  if (missing !== false) return missing;
  return networks.some((path) => existsSync(path)) ? false : skipFor('netavark is missing');
}

export interface Containers {
  /** Runs buildah to its end, in the network of this computer. Returns what it prints. */
  buildah(args: readonly string[]): Promise<string>;
  /** Runs podman to its end. Returns what it prints. */
  podman(args: readonly string[]): Promise<string>;
  /** Starts a container with `podman run`. */
  run(args: readonly string[]): RunningContainer;
  /** Requests a URL from the network that ports of containers are published in. */
  fetch(url: string, init?: object): Promise<{ status: number; text: string }>;
  /** Ends all containers, and removes their mounts and their network. */
  end(): void;
}

export interface RunningContainer {
  stdout(): string;
  stderr(): string;
  /** The exit status. */
  readonly ended: Promise<number | null>;
}

/**
 * Folders outside of the storage that the programs write to are covered. crun refuses version 1 of cgroups with a
 * hierarchy of version 2 beside it, unless it doesn't see the latter. The first process ends with this one, even a killed
 * one, because its input does, and all others end with it.
 */
const isolate = `
  for folder in /dev/shm /run/containers /run/crun /run/netns /var/lib/containers; do
    mkdir -p $folder
    mount -t tmpfs tmpfs $folder
  done
  if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
  ip link set lo up
  echo ready
  exec cat
`;

/** `folder` is where images and containers are stored. */
export async function startContainers(folder: string): Promise<Containers> {
  const unshare = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const holder = spawn('unshare', [...unshare, 'sh', '-ec', isolate]);
  const end = () => void holder.kill('SIGKILL');
  process.once('exit', end);
  let said = '';
  for (const stream of [holder.stdout, holder.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  await until('the namespaces are made', () => {
    if (holder.exitCode !== null) throw new Error(`unshare failed: ${said}`);
    return said.includes('ready');
  });
  const first = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  const enter = (...kinds: string[]) => ['--target', first, ...kinds.map((kind) => `--${kind}`)];
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'state')];
  const env = { ...process.env, PATH: systemPath, TMPDIR: folder };
  const podman = [
    ...[...enter('mount', 'pid', 'net'), 'podman', ...storage, '--tmpdir', join(folder, 'podman')],
    ...['--network-config-dir', join(folder, 'networks')],
    ...['--cgroup-manager', 'cgroupfs', '--events-backend', 'none'],
  ];

  async function output(args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('nsenter', args, { env, maxBuffer: 2 ** 26 });
    return stdout;
  }

  return {
    buildah: (args) => output([...enter('mount', 'pid'), 'buildah', ...storage, ...args]),
    podman: (args) => output([...podman, ...args]),
    run: (args) => run([...podman, 'run', ...limits, ...args], env),
    async fetch(url, init = {}) {
      const script = `
        const response = await fetch(...JSON.parse(process.argv[1]));
        console.log(JSON.stringify({ status: response.status, text: await response.text() }));
      `;
      const request = JSON.stringify([url, init]);
      const node = [process.execPath, '--input-type=module', '-e', script, request];
      return JSON.parse(await output([...enter('net'), ...node]));
    },
    end,
  };
}

/** Podman would raise these limits, which takes a capability that root may lack. Cgroups would outlive the container. */
const limits = [
  '--ulimit',
  'nofile=8192:8192',
  '--ulimit',
  'nproc=4096:4096',
  '--cgroups=disabled',
];

function run(args: readonly string[], env: NodeJS.ProcessEnv): RunningContainer {
  const child = spawn('nsenter', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { stdout: () => stdout, stderr: () => stderr, ended };
}
