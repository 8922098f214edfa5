// A disk of a fixed size: a file with an ext4 file system, which a boot mounts by a loop device in its own mount
// namespace. The kernel enforces the size, and releases the device when the last machine that mounts it ends.

import { execFile } from 'node:child_process';
import { rename, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import { allocate } from './disk-space.ts';

const execute = promisify(execFile);

/** One group of metadata for the whole disk, and a journal that does not grow with it: both keep it fast to make. */
const layout = ['-t', 'ext4', '-m', '0', '-G', '4096', '-O', '^resize_inode', '-J', 'size=64'];

export interface ImageContent {
  readonly sizeGib: number;
  /** `uid:gid` of the top directory. */
  readonly owner: string;
  /** Makes the directory that is copied into the image. Null for an empty image, without even `lost+found`. */
  readonly makeTree: (() => Promise<string>) | null;
}

/** A crash leaves no image or a whole one. Throws DriverError if the host's disk has no room for it. */
export async function createImage(
  context: SandboxContext,
  image: string,
  { sizeGib, owner, makeTree }: ImageContent,
) {
  const aside = `${image}.new`;
  await rm(aside, { force: true });
  const lazy = `lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=${owner}`;
  const kib = Math.floor(sizeGib * 1024 ** 2);
  try {
    // At once, because each waits for programs. Both end before a failure is thrown, so that a retry meets neither.
    const space = allocate(context, aside, kib * 1024);
    const [tree] = await Promise.allSettled([makeTree?.() ?? null, space]);
    await space;
    if (tree.status === 'rejected') throw tree.reason;
    const copy = tree.value === null ? [] : ['-d', tree.value];
    await execute('mke2fs', ['-qF', ...layout, '-E', lazy, ...copy, aside, `${kib}k`]);
    if (makeTree === null) await execute('debugfs', ['-w', '-R', 'rmdir lost+found', aside]);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  await rename(aside, image);
}

/** Returns the bytes that files use in an image. It may be mounted elsewhere: the kernel shares the device. */
export async function measureImage(image: string, mountPoint: string): Promise<number | null> {
  const measure = 'flock "$0" mount -t ext4 -o loop,nodev "$0" "$1" && stat -fc "%b %f %S" "$1"';
  const argv = ['--mount', '--propagation', 'private', '/bin/sh', '-c', measure, image, mountPoint];
  return execute('unshare', argv, { timeout: 60_000 }).then(
    ({ stdout }) => {
      const [blocks = 0, free = 0, size = 0] = stdout.split(' ').map(Number);
      return (blocks - free) * size;
    },
    () => null,
  );
}
