// GPU memory that other programs of this computer use.

import { type GpuProcess, readGpuProcesses } from '#lib/computer/nvidia-smi.ts';
import { findTree, readProcesses } from '#lib/computer/process-memory.ts';

/** Bytes by UUID of the GPU. Programs that this process started are not counted. Empty if it can't be measured. */
export async function measureForeignMemory(): Promise<ReadonlyMap<string, number>> {
  const all = await readGpuProcesses().catch(() => []);
  const own = new Set(findTree(await readProcesses(), process.pid).map(({ pid }) => pid));
  return sumMemory(all.filter(({ pid }) => !own.has(pid)));
}

export function sumMemory(processes: readonly GpuProcess[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { gpu, memoryBytes } of processes) sums.set(gpu, (sums.get(gpu) ?? 0) + memoryBytes);
  return sums;
}
