// Deletes what earlier runs of `millrace gpu build` left in the data directory: folders of builds that were killed, and
// kernels of releases before the previous one.

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { gpuFolder, kernelsFile } from './kernels.ts';

/** Keeps the kernels of the installed release and of one before it, which a server may use until its restart. */
export function cleanGpuFolder(dataDir: string): void {
  const folder = gpuFolder(dataDir);
  if (!existsSync(folder)) return;
  const [current, library] = [dirname(kernelsFile(dataDir)), basename(kernelsFile(dataDir))];
  const folders = readdirSync(folder).map((name) => join(folder, name));
  const kernels = folders
    .filter((one) => one !== current && existsSync(join(one, library)))
    .map((one) => ({ one, builtAt: statSync(join(one, library)).mtimeMs }))
    .sort((a, b) => b.builtAt - a.builtAt)
    .map(({ one }) => one);
  for (const one of [...folders.filter(isAbandoned), ...kernels.slice(1)])
    rmSync(one, { recursive: true, force: true });
}

/** The folder's name holds the id of the process that builds in it. */
function isAbandoned(folder: string): boolean {
  const id = /^build-(\d+)-/.exec(basename(folder))?.[1];
  return id !== undefined && !isRunning(Number(id));
}

function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
