// Downloads the published GPU kernels of models into the data directory.

import { rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { cleanGpuFolder } from './clean.ts';
import { type DownloadOptions, downloadMember } from './download.ts';
import { cudaLibrary, kernelsFolder, vulkanLibrary } from './kernels.ts';
import type { PinnedPackage } from './packages.ts';

/** Returns the library. Kernels that were there before are replaced once the new ones are complete. */
export async function installKernels(
  wanted: PinnedPackage,
  options: DownloadOptions,
): Promise<string> {
  cleanGpuFolder(options.dataDir);
  const folder = kernelsFolder(options.dataDir);
  const file = join(folder, basename(wanted.member));
  await downloadMember(wanted, file, options);
  const other = basename(file) === cudaLibrary ? vulkanLibrary : cudaLibrary;
  rmSync(join(folder, other), { force: true });
  return file;
}
