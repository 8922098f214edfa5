// GPU memory that other programs of this computer use.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Bytes by UUID of the GPU. Programs that this process started are not counted. Empty if it can't be measured. */
export async function measureForeignMemory(): Promise<ReadonlyMap<string, number>> {
  const query = ['--query-compute-apps=gpu_uuid,pid,used_memory', '--format=csv,noheader,nounits'];
  const csv = await execute('nvidia-smi', query, { timeout: 20_000 }).then(
    ({ stdout }) => stdout,
    () => '',
  );
  return sumMemory(csv, (pid) => isDescendant(pid, process.pid));
}

export async function sumMemory(
  csv: string,
  isOwn: (pid: number) => Promise<boolean>,
): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for (const line of csv.split('\n')) {
    const [gpu = '', pid, mebibytes] = line.split(',').map((field) => field.trim());
    if (!gpu.startsWith('GPU-') || (await isOwn(Number(pid)))) continue;
    // nvidia-smi prints [N/A] for what it can't see.
    sums.set(gpu, (sums.get(gpu) ?? 0) + (Number(mebibytes) || 0) * 2 ** 20);
  }
  return sums;
}

/** Bounds the way up to process 1, should processes end meanwhile and their ids be used again. */
const maxDepth = 64;

export async function isDescendant(pid: number, ancestor: number): Promise<boolean> {
  let current = pid;
  for (let depth = 0; depth < maxDepth && current > 1; depth++) {
    if (current === ancestor) return true;
    const status = await readFile(`/proc/${current}/status`, 'utf8').catch(() => '');
    current = Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1] ?? 0);
  }
  return false;
}
