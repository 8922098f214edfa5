// The built-in recipe for a small image, built from this host's programs without any network: BusyBox, bash, an ssh
// server, sudo and an init of our own. For trying out and for tests; it boots in a second.

import { execFile } from 'node:child_process';
import {
  access,
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { arch } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { DriverError } from '#cloud/drivers/driver.ts';
import { accounts, imageMetadata, imageTemplates, settings } from './image-files.ts';

const execute = promisify(execFile);

export const smallImage = 'millrace-small';

export interface HostImageOptions {
  /** False omits the templates, as in images from other makers; machines then get their files pushed. */
  readonly templates?: boolean;
}

const needed = ['busybox', 'bash', 'sshd', 'ssh-keygen', 'sudo', 'ldd', 'tar'];
const welcome = ['rsync', 'scp', 'curl', 'ps', 'env', 'setsid', 'stat'];
const searched = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];
const sftpServers = ['/usr/lib/openssh/sftp-server', '/usr/libexec/openssh/sftp-server'];
const folders = [
  'etc/ssh',
  'etc/millrace',
  'etc/pam.d',
  'proc',
  'sys',
  'dev',
  'run/sshd',
  'tmp',
  'var/log',
  'var/empty',
  'var/lib',
  'root',
  'home/ubuntu',
  'usr/bin',
  'usr/sbin',
  'usr/lib',
  'usr/lib64',
  'usr/libexec',
  'usr/local/bin',
  'lambda/nfs',
  'mnt',
];

/** Returns the path of a unified image tarball in `folder`. */
export async function buildHostImage(
  folder: string,
  options: HostImageOptions = {},
): Promise<string> {
  const programs = new Map<string, string>();
  for (const name of [...needed, ...welcome]) {
    const found = await findProgram(name);
    if (found) programs.set(name, found);
  }
  const missing = needed.filter((name) => !programs.has(name));
  if (missing.length > 0) {
    throw new DriverError('impossible', `This host lacks ${missing.join(', ')}: install them.`);
  }
  await mkdir(folder, { recursive: true });
  const work = await mkdtemp(path.join(folder, 'image-'));
  try {
    const root = path.join(work, 'rootfs');
    await makeFolders(root);
    await installPrograms(root, programs);
    await installModules(root);
    await writeSettings(root);
    const withTemplates = options.templates ?? true;
    await writeText(path.join(work, 'metadata.yaml'), imageMetadata(architecture(), withTemplates));
    for (const [name, text] of Object.entries(withTemplates ? imageTemplates : {})) {
      await writeText(path.join(work, 'templates', name), text);
    }
    const image = path.join(folder, withTemplates ? `${smallImage}.tar` : `${smallImage}-bare.tar`);
    // Files belong to root inside, whichever user builds the image.
    const owner = ['--owner=0', '--group=0', '--numeric-owner'];
    await execute('tar', [...owner, '-cf', `${image}.new`, '-C', work, '.']);
    await rename(`${image}.new`, image);
    return image;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The host's architecture as image metadata spells it. */
export function architecture(): string {
  return arch() === 'arm64' ? 'aarch64' : 'x86_64';
}

async function makeFolders(root: string) {
  for (const name of folders) await mkdir(path.join(root, name), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await symlink(`usr/${name}`, path.join(root, name));
  }
  await chmod(path.join(root, 'tmp'), 0o1777);
  await chmod(path.join(root, 'root'), 0o700);
}

async function installPrograms(root: string, programs: ReadonlyMap<string, string>) {
  const busybox = programs.get('busybox')!;
  await install(root, busybox, '/usr/bin/busybox');
  const { stdout } = await execute(busybox, ['--list']);
  for (const name of stdout.split('\n').filter((line) => /^[\w[-]+$/.test(line))) {
    if (name === 'busybox' || programs.has(name)) continue;
    await symlink('busybox', path.join(root, 'usr/bin', name));
  }
  for (const [name, file] of programs) {
    if (['busybox', 'ldd', 'tar'].includes(name)) continue;
    await install(root, file, name === 'sshd' ? '/usr/sbin/sshd' : `/usr/bin/${name}`);
  }
  await chmod(path.join(root, 'usr/bin/sudo'), 0o4755);
  await symlink('busybox', path.join(root, 'usr/bin/tar'));
  for (const server of sftpServers) {
    if (await exists(server)) await install(root, server, '/usr/lib/openssh/sftp-server');
  }
}

/** Installs modules that sudo and the name service load at runtime, which `ldd` does not list. */
async function installModules(root: string) {
  const { stdout } = await execute('find', [
    ...(await existing(['/usr/lib', '/usr/lib64', '/usr/libexec'])),
    '-name',
    'sudoers.so',
    '-o',
    '-path',
    '*/sudo/libsudo_util.so*',
    '-o',
    '-name',
    'libnss_files.so*',
    '-o',
    '-path',
    '*/security/pam_permit.so',
  ]);
  for (const file of stdout.split('\n').filter((line) => line !== '')) {
    await install(root, file, file);
  }
}

async function writeSettings(root: string) {
  for (const [file, [mode, text]] of Object.entries({ ...settings, ...accounts })) {
    await writeText(path.join(root, file), text, mode);
  }
  const release = '/etc/os-release';
  if (await exists(release)) await copyFile(release, path.join(root, 'etc/os-release'));
}

/** Copies a file and the libraries it is linked with, each to the path where it is looked up. */
async function install(root: string, source: string, target: string) {
  await copyOnce(root, source, target);
  const linked = await execute('ldd', [source]).then(
    ({ stdout }) => stdout,
    () => '',
  );
  for (const [library] of linked.matchAll(/\/[^\s()]+/g)) {
    if (library.endsWith(':') || !(await exists(library))) continue;
    // The folder may be a link, such as /lib to usr/lib.
    const place = path.join(await realpath(path.dirname(library)), path.basename(library));
    await copyOnce(root, library, place);
  }
}

async function copyOnce(root: string, source: string, target: string) {
  const place = path.join(root, target);
  if (await exists(place)) return;
  await mkdir(path.dirname(place), { recursive: true });
  await copyFile(source, place);
  await chmod(place, (await stat(source)).mode & 0o777);
}

async function writeText(file: string, text: string, mode = 0o644) {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, mode);
}

async function findProgram(name: string): Promise<string | undefined> {
  return (await existing(searched.map((folder) => path.join(folder, name))))[0];
}

async function existing(files: readonly string[]): Promise<string[]> {
  const found = await Promise.all(files.map(exists));
  return files.filter((_, index) => found[index]);
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
