// The CUDA kernels that `millrace gpu build` compiled for this computer. They are kept in the data directory, which
// `npm ci` does not touch, and belong to one release of llama.cpp: after an upgrade they must be built again.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of node-llama-cpp that has llama.cpp's source and the name of its release. */
export const findLlamaFolder = (): string =>
  join(dirname(fileURLToPath(import.meta.resolve('node-llama-cpp'))), '..', 'llama');

export const gpuFolder = (dataDir: string) => join(dataDir, 'gpu');

/** Where the kernels of the installed release are or will be. */
export function kernelsFile(dataDir: string): string {
  const info = readFileSync(join(findLlamaFolder(), 'llama.cpp.info.json'), 'utf8');
  const { tag } = JSON.parse(info) as { tag: string };
  return join(gpuFolder(dataDir), tag, 'libggml-cuda.so');
}

/** Null if they were not built for the installed release. */
export function findKernels(dataDir: string): string | null {
  const file = kernelsFile(dataDir);
  return existsSync(file) ? file : null;
}
