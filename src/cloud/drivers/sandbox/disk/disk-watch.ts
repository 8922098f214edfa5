// Stops machines that write too much where the kernel does not prevent it: directories have no size, and images of an
// earlier version may lack blocks. Also allocates such blocks as soon as there is room.

import { access } from 'node:fs/promises';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import {
  findRecord,
  isRunning,
  listMachineIds,
  machineDirectory,
} from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { measureTree } from './disk.ts';
import { fillImages, listMachineImages, readRoom } from './disk-space.ts';
import { findShare } from './shares.ts';

/** Time between two checks of all disks. A directory may exceed its size for this long. */
const checkIntervalMs = 60_000;
/** Time between two checks of the host's free space. */
const spaceIntervalMs = 1000;
/** What the server itself may write below the reserve before machines are stopped again. */
const slackBytes = 64 * 2 ** 20;

/** Stops a machine and records why. */
export type StopMachine = (id: string, reason: string) => Promise<void>;

async function checkDisks(context: SandboxContext, stop: StopMachine) {
  await fillImages(context, () => {});
  for (const id of await listMachineIds(context.dataDir)) {
    const directory = machineDirectory(context.dataDir, id);
    const record = await findRecord(directory);
    const isDirectory = await access(directory.disk).then(
      () => true,
      () => false,
    );
    if (!record || !isDirectory || !(await isRunning(context, id))) continue;
    const used = await measureTree(directory.disk, context.host.mode);
    const { storageGib } = record.spec;
    if (used === null || used <= storageGib * 1024 ** 3) continue;
    const usedGib = (used / 1024 ** 3).toFixed(2);
    const reason = `Its disk has ${storageGib} GiB and it used ${usedGib} GiB. Restart it, and delete files within a minute.`;
    context.log(`machine ${id} is stopped. ${reason}`);
    await stop(id, reason);
  }
}

/**
 * Stops all machines that can fill the host's disk when it falls below the reserve, and again whenever more of the
 * reserve is used. A machine that was restarted to delete files keeps running while it does only that.
 */
function createSpaceCheck(context: SandboxContext, stop: StopMachine) {
  let lowest = 0;
  return async function checkSpace() {
    const room = await readRoom(context);
    if (room >= 0) lowest = 0;
    if (room >= lowest) return;
    lowest = room - slackBytes;
    const reason =
      'The disk of its host is almost full, and the size of its disk or of a filesystem is not enforced. Restart it, and delete files.';
    for (const id of await findUnbounded(context)) {
      context.log(`machine ${id} is stopped. ${reason}`);
      await stop(id, reason);
    }
  };
}

/** Lists running machines with a disk or a filesystem that can take free space of the host. */
async function findUnbounded(context: SandboxContext): Promise<string[]> {
  const { dataDir } = context;
  const images = await listMachineImages(dataDir);
  const bounded = new Set(images.filter(({ missing }) => missing === 0).map(({ image }) => image));
  const found: string[] = [];
  for (const id of await listMachineIds(dataDir)) {
    const directory = machineDirectory(dataDir, id);
    const filesystems = (await findRecord(directory))?.spec.filesystems ?? [];
    const shares = await Promise.all(filesystems.map((each) => findShare(dataDir, each.id)));
    if (bounded.has(directory.diskImage) && !shares.includes('directory')) continue;
    if (await isRunning(context, id)) found.push(id);
  }
  return found;
}

/** Checks now and then until the returned function is called. The host's space is checked while machines run. */
export function watchDisks(context: SandboxContext, hasMachines: () => boolean, stop: StopMachine) {
  const repeat = (check: () => Promise<void>, intervalMs: number) => {
    let running = false;
    const timer = setInterval(() => {
      if (running) return;
      running = true;
      void check()
        .catch((error: Error) => context.log(`disks were not checked: ${error.message}`))
        .finally(() => {
          running = false;
        });
    }, intervalMs);
    return timer.unref();
  };
  const checkSpace = createSpaceCheck(context, stop);
  const timers = [
    repeat(() => checkDisks(context, stop), checkIntervalMs),
    repeat(async () => {
      if (hasMachines()) await checkSpace();
    }, spaceIntervalMs),
  ];
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}
