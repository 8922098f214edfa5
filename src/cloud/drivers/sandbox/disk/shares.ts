// Shared filesystems: images where the host can enforce their size, otherwise directories. They belong to no machine;
// machines that mount the same image share one device, so that they see each other's files.

import { lchown, mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import { shareImage, sharePath } from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { measureTree, removeTree, userOf } from './disk.ts';
import { createImage, measureImage } from './disk-image.ts';
import { readRoom } from './disk-space.ts';

/** By default a new filesystem gets this part of the free space. */
const defaultShare = 1 / 16;

/** Creates an empty filesystem owned by the machines' `ubuntu`, or does nothing if it exists. */
export async function createShare(context: SandboxContext, id: string) {
  const { dataDir, host, locks, filesystemGib } = context;
  await locks.run(`filesystem ${id}`, async () => {
    if ((await findShare(dataDir, id)) !== undefined) return;
    const owner = userOf(host.mode);
    if (host.diskImages) {
      const freeGib = ((await readRoom(context)) * defaultShare) / 2 ** 30;
      const sizeGib = filesystemGib ?? Math.max(1, Math.floor(freeGib));
      const content = { sizeGib, owner, makeTree: null };
      return createImage(context, shareImage(dataDir, id), content);
    }
    const directory = sharePath(dataDir, id);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    if (process.getuid?.() !== 0) return;
    const [uid, gid] = owner.split(':').map(Number);
    await lchown(directory, uid!, gid!);
  });
}

/** Tells how a filesystem is stored; undefined if it is not on this host. */
export async function findShare(
  dataDir: string,
  id: string,
): Promise<'image' | 'directory' | undefined> {
  if (await stat(shareImage(dataDir, id)).catch(() => null)) return 'image';
  return (await stat(sharePath(dataDir, id)).catch(() => null)) ? 'directory' : undefined;
}

export async function removeShare({ dataDir }: SandboxContext, id: string) {
  const image = shareImage(dataDir, id);
  for (const file of [image, `${image}.new`]) await rm(file, { force: true });
  await removeTree(sharePath(dataDir, id));
}

export async function measureShare({ dataDir, host }: SandboxContext, id: string) {
  if ((await findShare(dataDir, id)) !== 'image') {
    return measureTree(sharePath(dataDir, id), host.mode);
  }
  return measureImage(shareImage(dataDir, id), path.join(dataDir, 'filesystems'));
}
