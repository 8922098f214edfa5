// A machine's disk becomes its root: an image where the host can enforce its size, otherwise a
// directory. It is built under another name and renamed when complete, so that a crash leaves no
// disk or a whole one. Once a tenant has used it, it is never accessed by path again.

import { execFile } from 'node:child_process';
import { access, chmod, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import type { IsolationMode } from '#cloud/drivers/sandbox/host.ts';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import type { MachineDirectory } from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { findNameservers } from '#cloud/drivers/sandbox/network/resolver.ts';
import { measureUsage } from '#cloud/drivers/shared/filesystem-usage.ts';
import { createImage } from './disk-image.ts';
import { diskIdBase } from './id-ranges.ts';

const execute = promisify(execFile);

const ubuntu = 1000;

export async function createDisk(
  context: SandboxContext,
  directory: MachineDirectory,
  { hostname, storageGib }: MachineSpec,
) {
  const { mode, diskImages } = context.host;
  if ((await exists(directory.disk)) || (await exists(directory.diskImage))) return;
  const aside = `${directory.disk}.new`;
  // No tenant has used it, so Node may remove it, which is faster than a program.
  await rm(aside, { recursive: true, force: true });
  const makeTree = () => createTree(aside, hostname, mode);
  if (!diskImages) return rename(await makeTree(), directory.disk);
  const owner = `${diskIdBase}:${diskIdBase}`;
  await createImage(context, directory.diskImage, { sizeGib: storageGib, owner, makeTree });
  await rm(aside, { recursive: true });
}

async function createTree(aside: string, hostname: string, mode: IsolationMode): Promise<string> {
  await mkdir(aside, { recursive: true });
  const at = (name: string) => path.join(aside, name);

  const top = ['etc', 'home', 'opt', 'srv', 'mnt', 'media', 'data', 'root', 'tmp', 'lambda/nfs'];
  const variable = ['log', 'lib', 'cache', 'spool', 'mail', 'local', 'opt', 'tmp'];
  for (const name of [...top, ...variable.map((each) => `var/${each}`), 'home/ubuntu/.ssh']) {
    await mkdir(at(name), { recursive: true });
  }
  await symlink('/run', at('var/run'));
  await symlink('/run/lock', at('var/lock'));
  await symlink('/run/machine/boot.log', at('var/log/cloud-init-output.log'));
  await writeSettings(at('etc'), hostname, mode);
  for (const name of ['.bashrc', '.profile', '.bash_logout']) {
    const skeleton = await readFile(`/etc/skel/${name}`).catch(() => null);
    if (skeleton) await writeFile(at(`home/ubuntu/${name}`), skeleton);
  }
  // Independent of the server's umask.
  await execute('chmod', ['-R', 'u=rwX,go=rX', aside]);
  for (const name of ['tmp', 'var/tmp']) await chmod(at(name), 0o1777);
  for (const name of ['root', 'home/ubuntu/.ssh']) await chmod(at(name), 0o700);
  await chmod(at('home/ubuntu'), 0o750);
  if (mode === 'mapped') await chmod(at('etc/shadow'), 0o640);

  if (mode === 'mapped') {
    const both = 'chown -hR "$1" "$2" && chown -hR "$3" "$2/home/ubuntu"';
    const root = `${diskIdBase}:${diskIdBase}`;
    await execute('/bin/sh', ['-c', both, 'sh', root, aside, userOf(mode)]);
  }
  if (mode === 'none') await execute('chown', ['-hR', userOf(mode), aside]);
  return aside;
}

/** Returns the bytes used by a tree filled by a tenant; null if it takes too long to count. */
export async function measureTree(directory: string, mode: IsolationMode): Promise<number | null> {
  // An ordinary user is root over its own files in a user namespace; the host's root needs nothing.
  const asOwner = mode === 'single' ? ['unshare', '--user', '--map-root-user'] : [];
  return measureUsage(directory, asOwner);
}

/** Removes a tree filled by a tenant. Links are not followed; closed directories are made accessible. */
export async function removeTree(directory: string) {
  const remove = () => execute('rm', ['-rf', '--one-file-system', '--', directory]);
  await remove().catch(async () => {
    await execute('chmod', ['-R', 'u+rwX', '--', directory]).catch(() => {});
    await remove();
  });
}

/** Returns the host's `uid:gid` for files that belong to `ubuntu` inside. */
export function userOf(mode: IsolationMode): string {
  if (mode !== 'single' && process.getuid?.() === 0) {
    return `${diskIdBase + ubuntu}:${diskIdBase + ubuntu}`;
  }
  return `${process.getuid?.()}:${process.getgid?.()}`;
}

async function writeSettings(etc: string, hostname: string, mode: IsolationMode) {
  const shell = (await exists('/bin/bash')) ? '/bin/bash' : '/bin/sh';
  const files: Record<string, string> = {
    hostname: `${hostname}\n`,
    hosts: `127.0.0.1\tlocalhost\n127.0.1.1\t${hostname}\n::1\tlocalhost ip6-localhost\n`,
    passwd: [
      `root:x:0:0:root:/root:${shell}`,
      'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
      `ubuntu:x:${ubuntu}:${ubuntu}:Ubuntu:/home/ubuntu:${shell}\n`,
    ].join('\n'),
    group: `root:x:0:\nadm:x:4:ubuntu\ntty:x:5:\nsudo:x:27:ubuntu\nnogroup:x:65534:\nubuntu:x:${ubuntu}:\n`,
    'nsswitch.conf':
      'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n',
    'resolv.conf': (await findNameservers()).map((server) => `nameserver ${server}\n`).join(''),
    profile: [
      'export PATH=/run/machine/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      '[ ! -d /usr/local/cuda/bin ] || PATH=$PATH:/usr/local/cuda/bin',
      '[ -z "$BASH" ] || [ ! -r /etc/bash.bashrc ] || . /etc/bash.bashrc',
      'for file in /etc/profile.d/*.sh; do [ ! -r "$file" ] || . "$file"; done\n',
    ].join('\n'),
  };
  if (mode === 'mapped') files.shadow = 'root:*:19000:0:99999:7:::\nubuntu:!:19000:0:99999:7:::\n';
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(etc, name), text);
  await mkdir(path.join(etc, 'profile.d'));

  for (const name of [
    'bash.bashrc',
    'services',
    'protocols',
    'localtime',
    'login.defs',
    'inputrc',
  ]) {
    const text = await readFile(`/etc/${name}`).catch(() => null);
    if (text) await writeFile(path.join(etc, name), text);
  }
  await symlink('/usr/lib/os-release', path.join(etc, 'os-release'));
  await symlink('/proc/self/mounts', path.join(etc, 'mtab'));
  // These depend on the host's /usr; scripts/stage.sh binds them at every boot.
  for (const name of ['ld.so.cache', 'alternatives', 'ca-certificates']) {
    await symlink(`/run/machine/host/${name}`, path.join(etc, name));
  }
  for (const name of ['ssl/certs', 'pki/tls', 'pki/ca-trust']) {
    await mkdir(path.dirname(path.join(etc, name)), { recursive: true });
    await symlink(`/run/machine/host/${name.replace('/', '-')}`, path.join(etc, name));
  }
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
