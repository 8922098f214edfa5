// Keeps memory for the host and this server, however much the machines use: all machines together get less than
// the host has, and if the kernel must end a process, this server is among the last.

import { writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import type { SandboxContext } from './context.ts';
import { limitAllGroups } from './control-groups.ts';

const serverOomScore = -500;

/**
 * Bytes that all machines together may use. By default a sixteenth of the memory is reserved for the host, and at
 * least 1 GiB; never more than half.
 */
export function memoryForMachines(reservedGib: number | null, total = totalmem()): number {
  const reserved = reservedGib === null ? Math.max(total / 16, 1024 ** 3) : reservedGib * 1024 ** 3;
  return Math.floor(total - Math.min(reserved, total / 2));
}

export async function reserveMemory({ host, machineMemory, log }: SandboxContext) {
  if (host.mode !== 'mapped') return;
  // Fails without CAP_SYS_RESOURCE. Machines have a higher score than this server's default in any case.
  await writeFile('/proc/self/oom_score_adj', String(serverOomScore)).catch(() => {});
  if (!host.controlGroups) return;
  await limitAllGroups(host.controlGroups, machineMemory).catch((error: Error) =>
    log(`Machines may use all memory of this host: ${error.message}`),
  );
}
