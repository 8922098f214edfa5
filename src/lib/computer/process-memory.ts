// The memory of process trees on this computer, read from /proc when it is asked for.

import { readdir, readFile } from 'node:fs/promises';

export interface ProcessMemory {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  /** Resident memory. Pages that it shares with other processes count in full. */
  readonly bytes: number;
}

/** How many files are open at once. */
const batchSize = 32;

/** All processes of this computer; none on systems without /proc. Those that end meanwhile are left out. */
export async function readProcesses(): Promise<readonly ProcessMemory[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found: ProcessMemory[] = [];
  for (let at = 0; at < pids.length; at += batchSize) {
    const batch = pids.slice(at, at + batchSize);
    const texts = await Promise.all(
      batch.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')),
    );
    found.push(...texts.filter((text) => text !== '').map(toProcess));
  }
  return found;
}

export function toProcess(status: string): ProcessMemory {
  // In a container, the first session is the one as this process sees it.
  const find = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  return {
    pid: find('Pid'),
    parent: find('PPid'),
    session: find('NSsid'),
    bytes: find('VmRSS') * 1024,
  };
}

/** The process, the others of the session that it leads, and all that descend from these. */
export function findTree(
  processes: readonly ProcessMemory[],
  root: number,
): readonly ProcessMemory[] {
  const children = Map.groupBy(processes, ({ parent }) => parent);
  const tree = new Set(processes.filter(({ pid, session }) => pid === root || session === root));
  // A set is iterated with what is added meanwhile.
  for (const { pid } of tree) for (const child of children.get(pid) ?? []) tree.add(child);
  return [...tree];
}

export const sumBytes = (processes: readonly ProcessMemory[]): number =>
  processes.reduce((sum, { bytes }) => sum + bytes, 0);
