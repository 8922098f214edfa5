// The GPU kernels of models on this computer, downloaded by `millrace gpu install` or compiled by `millrace gpu build`.
// They are kept in the data directory, which `npm ci` does not touch, and belong to one release of llama.cpp.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readLlamaRelease } from '#lib/computer/llama-libraries.ts';

export const gpuFolder = (dataDir: string) => join(dataDir, 'gpu');

/** Where the kernels of the installed release are or will be. */
export const kernelsFolder = (dataDir: string) => join(gpuFolder(dataDir), readLlamaRelease());

export const cudaLibrary = 'libggml-cuda.so';
export const vulkanLibrary = 'libggml-vulkan.so';

/** The library with kernels in a folder; null if there is none. */
export const findLibrary = (folder: string): string | null =>
  [cudaLibrary, vulkanLibrary].map((name) => join(folder, name)).find(existsSync) ?? null;

/** Null if there are none for the installed release, or llama.cpp is not installed, which loading a model reports. */
export function findKernels(dataDir: string): string | null {
  try {
    return findLibrary(kernelsFolder(dataDir));
  } catch {
    return null;
  }
}
