// User and group ids of machines. On disk, all machines and shared filesystems use the same 65,536 ids. A running
// machine has 65,536 of its own, so that limits which the kernel keeps per user apply to each machine alone;
// its mounts translate between the two.

import { readdir, stat } from 'node:fs/promises';
import { DriverError } from '#cloud/drivers/driver.ts';

/** First of the ids on disk. Machines run with these too where mounts can't translate. */
export const diskIdBase = 770_000_000;
export const idCount = 65_536;

/** Above the ids that systemd gives to its containers, below those that programs take for negative. */
const firstBase = 0x7000_0000;
const rangeCount = 4000;

/** Searches from a range derived from the id, so that two servers on one host seldom collide. */
export function chooseIdBase(id: string, isTaken: (base: number) => boolean): number {
  const start = Number.parseInt(id.slice(0, 8), 16);
  for (let step = 0; step < rangeCount; step += 1) {
    const base = firstBase + ((start + step) % rangeCount) * idCount;
    if (!isTaken(base)) return base;
  }
  throw new DriverError('unavailable', `All ${rangeCount} id ranges for machines are in use.`);
}

/** Returns the ranges with a process on this host, whichever server started it. */
export async function findRunningBases(): Promise<Set<number>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const owners = await Promise.all(
    pids.map((pid) =>
      stat(`/proc/${pid}`).then(
        ({ uid }) => uid,
        () => 0,
      ),
    ),
  );
  return new Set(owners.map((uid) => uid - ((uid - firstBase) % idCount)));
}
