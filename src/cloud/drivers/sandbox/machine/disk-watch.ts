// Stops machines whose disk has outgrown its size, where the size is not enforced: on hosts without disk images,
// and for disks that were made without them.

import { access } from 'node:fs/promises';
import { measureUsage } from '#cloud/drivers/shared/filesystem-usage.ts';
import type { SandboxContext } from './context.ts';
import { findRecord, isRunning, listMachineIds, machineDirectory } from './machine-directory.ts';

/** Time between two checks of all disks. A machine may exceed its size for this long. */
const checkIntervalMs = 60_000;

/** Stops a machine and records why. */
export type StopMachine = (id: string, reason: string) => Promise<void>;

/** An ordinary user is root over its own files in a user namespace; the host's root needs nothing. */
export function asOwner({ host }: SandboxContext): string[] {
  return host.mode === 'single' ? ['unshare', '--user', '--map-root-user'] : [];
}

async function checkDisks(context: SandboxContext, stop: StopMachine) {
  for (const id of await listMachineIds(context.dataDir)) {
    const directory = machineDirectory(context.dataDir, id);
    const record = await findRecord(directory);
    const isDirectory = await access(directory.disk).then(
      () => true,
      () => false,
    );
    if (!record || !isDirectory || !(await isRunning(context, id))) continue;
    const used = await measureUsage(directory.disk, asOwner(context));
    const { storageGib } = record.spec;
    if (used === null || used <= storageGib * 1024 ** 3) continue;
    const usedGib = (used / 1024 ** 3).toFixed(2);
    const reason = `Its disk has ${storageGib} GiB and it used ${usedGib} GiB. Restart it, and delete files within a minute.`;
    context.log(`machine ${id} is stopped. ${reason}`);
    await stop(id, reason);
  }
}

/** Checks now and then until the returned function is called. */
export function watchDisks(context: SandboxContext, stop: StopMachine) {
  let running = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    void checkDisks(context, stop)
      .catch((error: Error) => context.log(`disks were not checked: ${error.message}`))
      .finally(() => {
        running = false;
      });
  }, checkIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
