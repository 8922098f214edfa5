// A disk of a fixed size: a sparse file with an ext4 file system, which a boot mounts by a loop device in its own
// mount namespace. The kernel enforces the size, and releases the device when the machine ends.

import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { diskIdBase } from './id-ranges.ts';

const execute = promisify(execFile);

/** One group of metadata for the whole disk, and a journal that does not grow with it: both keep it fast to make. */
const layout = ['-t', 'ext4', '-m', '0', '-G', '4096', '-O', '^resize_inode', '-J', 'size=64'];
const owner = `root_owner=${diskIdBase}:${diskIdBase}`;

/** Makes an image with a copy of the tree. A crash leaves no image or a whole one. */
export async function createImage(image: string, tree: string, sizeGib: number) {
  const aside = `${image}.new`;
  await rm(aside, { force: true });
  const lazy = `lazy_itable_init=1,lazy_journal_init=1,nodiscard,${owner}`;
  await execute('mke2fs', [
    '-qF',
    ...layout,
    '-E',
    lazy,
    '-d',
    tree,
    aside,
    `${Math.round(sizeGib * 1024 ** 2)}k`,
  ]);
  await rename(aside, image);
}

/** Tries it: mke2fs or `flock` may be missing, or a container may have no loop devices. */
export async function canUseImages(dataDir: string): Promise<boolean> {
  const folder = await mkdtemp(path.join(dataDir, '.probe-'));
  const image = path.join(folder, 'image');
  const mount = ['flock', image, 'mount', '-o', 'loop', image, folder];
  try {
    await execute('mke2fs', ['-qF', '-t', 'ext4', '-O', '^has_journal', image, '1M']);
    await execute('unshare', ['--mount', '--propagation', 'private', ...mount]);
    return true;
  } catch {
    return false;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
