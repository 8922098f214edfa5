// Deletes what earlier runs of `millrace gpu` left in the data directory: folders of builds that were killed, downloads
// of other releases, and kernels of releases before the previous one.

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { toPartName } from './download.ts';
import { findLibrary, gpuFolder, kernelsFolder } from './kernels.ts';
import { kernelPackages, sourcePackage } from './packages.ts';

/** Keeps the kernels of the installed release and of one before it, which a server may use until its restart. */
export function cleanGpuFolder(dataDir: string): void {
  const folder = gpuFolder(dataDir);
  if (!existsSync(folder)) return;
  const current = kernelsFolder(dataDir);
  const folders = readdirSync(folder).map((name) => join(folder, name));
  const kernels = folders
    .filter((one) => one !== current)
    .map((one) => ({ one, library: findLibrary(one) }))
    .flatMap(({ one, library }) =>
      library === null ? [] : [{ one, builtAt: statSync(library).mtimeMs }],
    )
    .sort((a, b) => b.builtAt - a.builtAt)
    .map(({ one }) => one);
  const abandoned = folders.filter((one) => isAbandonedFolder(one) || isOldDownload(one));
  for (const one of [...abandoned, ...kernels.slice(1)])
    rmSync(one, { recursive: true, force: true });
}

/** The folder's name holds the id of the process that builds in it. */
function isAbandonedFolder(folder: string): boolean {
  const id = /^build-(\d+)-/.exec(basename(folder))?.[1];
  return id !== undefined && !isRunning(Number(id));
}

function isOldDownload(file: string): boolean {
  const current = [...Object.values(kernelPackages), sourcePackage].map(toPartName);
  return basename(file).startsWith('download-') && !current.includes(basename(file));
}

function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
