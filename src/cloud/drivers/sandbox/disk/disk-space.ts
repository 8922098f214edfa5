// Promises disk space of the host to images, and keeps a reserve for the server. All blocks of an image are allocated
// when it is made: a tenant that fills its disk takes nothing from the host, and an image that does not fit is refused.

import { execFile } from 'node:child_process';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { DriverError } from '#cloud/drivers/driver.ts';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import {
  listMachineIds,
  machineDirectory,
} from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { readFreeBytes } from '#lib/computer/disk-space.ts';

const execute = promisify(execFile);

interface ImageSpace {
  readonly image: string;
  readonly bytes: number;
  /** Bytes without a block on the host: of a sparse image of an earlier version, or zeroed by its machine's kernel. */
  readonly missing: number;
}

/** Bytes of the host's disk that may still be promised; negative below the reserve. */
export const readRoom = async ({ dataDir, diskReserve }: SandboxContext) =>
  (await readFreeBytes(dataDir)) - diskReserve;

/** Part of the disk that all machines together may use. The rest is for models, filesystems and the database. */
const machineShare = 1 / 2;

/**
 * Returns the GiB that types divide. What is measured first, counting what machines have already,
 * is kept in a file: a type would otherwise change with every file that someone writes.
 */
export async function readMachinesDisk(context: SandboxContext): Promise<number> {
  const { dataDir, machinesDiskGib } = context;
  if (machinesDiskGib !== null) return machinesDiskGib;
  const file = path.join(dataDir, 'machines-disk-gib');
  const kept = Number(await readFile(file, 'utf8').catch(() => ''));
  if (Number.isInteger(kept) && kept > 0) return kept;
  const images = await listMachineImages(dataDir);
  const used = images.reduce((sum, { bytes, missing }) => sum + bytes - missing, 0);
  const gib = Math.floor((((await readRoom(context)) + used) * machineShare) / 2 ** 30);
  // A disk without room is measured again.
  if (gib > 0) await writeFile(file, `${gib}\n`).catch(() => {});
  return Math.max(0, gib);
}

/** Allocates the blocks of a file up to this size, without changing what it contains. */
export async function allocate(context: SandboxContext, file: string, bytes: number) {
  await context.locks.run('disk space', async () => {
    const others = (await listImages(context.dataDir)).filter(({ image }) => image !== file);
    const promised = others.reduce((sum, { missing }) => sum + missing, 0);
    const room = (await readRoom(context)) - promised;
    const needed = bytes - ((await stat(file).catch(() => null))?.blocks ?? 0) * 512;
    if (needed > room) {
      const [wanted, left] = [needed, Math.max(0, room)].map((each) => (each / 2 ** 30).toFixed(2));
      const reason = `${wanted} GiB do not fit into the ${left} GiB that are left beside the reserve`;
      throw new DriverError('unavailable', `The disk of this host is almost full: ${reason}.`);
    }
    await execute('fallocate', ['-l', String(bytes), file]);
  });
}

/** Allocates what images lack, as far as there is room. */
export async function fillImages(context: SandboxContext, log: SandboxContext['log']) {
  for (const { image, bytes, missing } of await listImages(context.dataDir)) {
    if (missing === 0) continue;
    await allocate(context, image, bytes).catch((error: Error) =>
      log(`${image} may lack disk space later. ${error.message}`),
    );
  }
}

const listImages = async (dataDir: string) => [
  ...(await listMachineImages(dataDir)),
  ...(await listShareImages(dataDir)),
];

export async function listMachineImages(dataDir: string): Promise<ImageSpace[]> {
  const ids = await listMachineIds(dataDir);
  return measureImages(ids.map((id) => machineDirectory(dataDir, id).diskImage));
}

async function listShareImages(dataDir: string): Promise<ImageSpace[]> {
  const folder = path.join(dataDir, 'filesystems');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.img'));
  return measureImages(names.map((name) => path.join(folder, name)));
}

async function measureImages(images: readonly string[]): Promise<ImageSpace[]> {
  const found: ImageSpace[] = [];
  for (const image of images) {
    const file = await stat(image).catch(() => null);
    if (!file) continue;
    found.push({ image, bytes: file.size, missing: Math.max(0, file.size - file.blocks * 512) });
  }
  return found;
}
