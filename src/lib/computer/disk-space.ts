// Free space of the disk that holds a folder.

import { statfs } from 'node:fs/promises';

export interface DiskSpace {
  /** Bytes that this process may still write. */
  freeBytes(): Promise<number>;
  /** True if so little is left that writes fail, or are about to. */
  isFull(): Promise<boolean>;
}

const fullBytes = 16 * 2 ** 20;

export function createDiskSpace(folder: string): DiskSpace {
  const freeBytes = () => readFreeBytes(folder);
  return { freeBytes, isFull: async () => (await freeBytes()) < fullBytes };
}

export async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

export const isDiskFullCode = (code: string | undefined) => code === 'ENOSPC' || code === 'EDQUOT';
