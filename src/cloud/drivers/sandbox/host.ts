// Finds out once, by trying, what this host allows: namespaces, network tools and control groups. The rest of
// the driver relies on this instead of guessing.

import { execFile } from 'node:child_process';
import { access, constants, mkdtemp, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { installMappedBind } from '#cloud/drivers/sandbox/disk/mapped-bind.ts';
import {
  type ControlGroups,
  findControlGroups,
} from '#cloud/drivers/sandbox/machine/control-groups.ts';
import { installConfine, installConfineAsUbuntu } from '#cloud/drivers/sandbox/seccomp/confine.ts';

const execute = promisify(execFile);

/**
 * `mapped`: the server is root; machines get a range of ids with a root of their own.
 * `single`: the server is an ordinary user; machines have one id, the server's, which they see as `ubuntu`.
 * `none`: no isolation; only if the operator asked for it.
 */
export type IsolationMode = 'mapped' | 'single' | 'none';

export interface SandboxHost {
  readonly mode: IsolationMode;
  /** Why machines can't run here; null if they can. */
  readonly obstacle: string | null;
  /** True if the server is root and has `ip` and `nft`: machines get an interface and rules are enforced. */
  readonly canRoute: boolean;
  /** Why machines have no network and what gives them one; null if they have one. */
  readonly networkObstacle: string | null;
  readonly controlGroups: ControlGroups | null;
  /** True if the sizes of disks are enforced; otherwise machines that exceed theirs are stopped. */
  readonly diskImages: boolean;
  /** Path of the program that binds a directory with translated ids; null if machines share their ids. */
  readonly mappedBind: string | null;
  /** True if machines may create namespaces of their own. */
  readonly nested: boolean;
  /** Path of the program that installs the seccomp filter; null if this host can't. */
  readonly confine: string | null;
  /** Path of the program that process 1 of a machine is started through; null if this host can't filter. */
  readonly confineInit: string | null;
  readonly shell: string;
  /** Path of util-linux's `script`, which opens a terminal inside the machine; null if missing. */
  readonly script: string | null;
  /** Path of OpenSSH's sftp server; null to use the built-in one. */
  readonly sftpServer: string | null;
}

/** Folders of the data directory that are mounted into machines. They must exist. */
export const hostFolders = ['machines', 'filesystems'] as const;

const programFolders = ['/usr/bin', '/usr/sbin', '/bin', '/sbin', '/usr/local/bin'];

export interface HostWishes {
  readonly isolation: 'auto' | 'none';
  /** Machines may create namespaces and mounts of their own. */
  readonly nested: boolean;
}

export async function inspectHost(
  dataDir: string,
  { isolation, nested }: HostWishes,
): Promise<SandboxHost> {
  const isRoot = process.getuid?.() === 0;
  const obstacle = isolation === 'none' ? null : await findObstacle(isRoot, dataDir);
  const mode = isolation === 'none' ? 'none' : isRoot ? 'mapped' : 'single';
  const isolated = mode === 'mapped' && obstacle === null;
  const networkObstacle = mode === 'none' ? null : await findNetworkObstacle(isRoot);
  const confine = mode === 'none' ? null : await installConfine(dataDir, { nested });
  return {
    mode,
    obstacle,
    canRoute: isolated && networkObstacle === null,
    networkObstacle,
    controlGroups: isRoot ? await findControlGroups() : null,
    mappedBind: isolated
      ? await installMappedBind(
          dataDir,
          hostFolders.map((name) => path.join(dataDir, name)),
        )
      : null,
    diskImages: isolated && (await canUseImages(dataDir)),
    nested,
    confine,
    confineInit:
      mode === 'single' && confine ? await installConfineAsUbuntu(dataDir, { nested }) : confine,
    shell: (await findFile(['/bin/bash', '/usr/bin/bash'])) ?? '/bin/sh',
    script: await findProgram('script'),
    sftpServer: await findFile([
      '/usr/lib/openssh/sftp-server',
      '/usr/libexec/openssh/sftp-server',
      '/usr/lib/ssh/sftp-server',
    ]),
  };
}

/** Tries namespaces, in a folder that must exist. Returns why machines can't run here, or null. */
export async function findObstacle(isRoot: boolean, dataDir: string): Promise<string | null> {
  if (process.platform !== 'linux') return `Sandboxes need Linux; this is ${process.platform}.`;
  if (!(await findProgram('bash'))) return 'Sandboxes need bash.';
  for (const program of ['unshare', 'nsenter', 'setsid', 'setpriv', 'mount', 'pivot_root']) {
    if (!(await findProgram(program))) return `Sandboxes need ${program} from util-linux.`;
  }
  const probe = await mkdtemp(path.join(dataDir, '.probe-'));
  const user = isRoot ? ['--user', '--keep-caps'] : ['--user', '--map-root-user'];
  const mount = isRoot ? ['true'] : ['mount', '-t', 'tmpfs', 'probe', probe];
  const namespaces = ['--mount', '--pid', '--uts', '--ipc', '--net', '--cgroup', '--fork'];
  try {
    await execute('unshare', [...user, ...namespaces, ...mount], { timeout: 10_000 });
    return null;
  } catch (error) {
    const reason = String((error as { stderr?: string }).stderr ?? error).trim();
    return `This kernel refuses the namespaces that isolate machines (${reason}).`;
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
}

async function findNetworkObstacle(isRoot: boolean): Promise<string | null> {
  if (!isRoot) return toNetworkObstacle('the server is not root', 'Run `sudo ./millrace serve`.');
  const missing: string[] = [];
  for (const name of ['ip', 'nft']) if (!(await findProgram(name))) missing.push(`\`${name}\``);
  if (missing.length > 0) {
    return toNetworkObstacle(
      `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing`,
      'Run `apt-get install iproute2 nftables` or `dnf install iproute nftables`, then restart the server.',
    );
  }
  return execute('nft', ['list', 'tables'], { timeout: 10_000 }).then(
    () => null,
    (error: { stderr?: string }) =>
      toNetworkObstacle(
        `\`nft list tables\` fails (${(error.stderr || String(error)).trim().slice(0, 200)})`,
        'In a container, add the capability: `--cap-add NET_ADMIN`. Then restart the server.',
      ),
  );
}

const toNetworkObstacle = (reason: string, remedy: string) =>
  `Machines have no internet access and can't reach each other, because ${reason}. ${remedy}`;

/** Disk images: a program may be missing, a file system can't allocate blocks, or a container has no loop devices. */
async function canUseImages(dataDir: string): Promise<boolean> {
  const folder = await mkdtemp(path.join(dataDir, '.probe-'));
  const image = path.join(folder, 'image');
  const mount = ['flock', image, 'mount', '-o', 'loop', image, folder];
  try {
    await execute('fallocate', ['-l', '1048576', image]);
    await execute('mke2fs', ['-qF', '-t', 'ext4', '-O', '^has_journal', image, '1M']);
    await execute('debugfs', ['-R', 'stats', image]);
    await execute('unshare', ['--mount', '--propagation', 'private', ...mount]);
    return true;
  } catch {
    return false;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function findProgram(name: string): Promise<string | null> {
  return findFile(programFolders.map((folder) => path.join(folder, name)));
}

async function findFile(candidates: readonly string[]): Promise<string | null> {
  for (const candidate of candidates) {
    const found = await access(candidate, constants.X_OK).then(
      async () => (await stat(candidate)).isFile(),
      () => false,
    );
    if (found) return candidate;
  }
  return null;
}
