// The npm packages that the GPU commands download, pinned as a lock file would: not everyone has a GPU, and together
// they are larger than all of Millrace. They follow the version of `@node-llama-cpp/linux-x64` in package.json.

import { llamaVersion } from '#lib/computer/llama-libraries.ts';
import { cudaLibrary, vulkanLibrary } from './kernels.ts';

export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** SHA-512 of the tarball, in base64. */
  readonly sha512: string;
  /** Size of the tarball. */
  readonly bytes: number;
  /** The only file that is taken out of it, and the size of that file. */
  readonly member: string;
  readonly memberBytes: number;
}

export type KernelKind = 'cuda13' | 'cuda12' | 'vulkan';

export const kernelPackages: Readonly<Record<KernelKind, PinnedPackage>> = {
  cuda13: {
    name: '@node-llama-cpp/linux-x64-cuda',
    version: llamaVersion,
    sha512:
      '8rQCjyNNLZJUFit+YpjwlC4hwkKgOMIkB2wuycKBf8NU2O3ySKbiWZQ8aw9ku2nUTXjSnUIrE6KB88itduTBuA==',
    bytes: 142_898_030,
    member: `package/bins/linux-x64-cuda/${cudaLibrary}`,
    memberBytes: 158_993_272,
  },
  cuda12: {
    name: '@node-llama-cpp/linux-x64-cuda-ext',
    version: llamaVersion,
    sha512:
      '4e5ajkiM2aR2WAdB/N/ACk4weEhHvOAIrzxZPsIX0xDFW5+6hhShuy1/vs88SK9NGdgAco9IyE28eYS0H1efpA==',
    bytes: 176_664_119,
    member: `package/bins/linux-x64-cuda/fallback/${cudaLibrary}`,
    memberBytes: 374_450_984,
  },
  vulkan: {
    name: '@node-llama-cpp/linux-x64-vulkan',
    version: llamaVersion,
    sha512:
      'bBxqU+JOcBu1nb5Qj2zcMci+JByT1E8EajHvYodyNfVIPkEhXh+/HMwR1/BT7xP08YK0hks+kM8fglER0P8JEg==',
    bytes: 24_311_427,
    member: `package/bins/linux-x64-vulkan/${vulkanLibrary}`,
    memberBytes: 43_255_472,
  },
};

/** llama.cpp's source, as a git bundle. */
export const sourcePackage: PinnedPackage = {
  name: 'node-llama-cpp',
  version: llamaVersion,
  sha512:
    'bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==',
  bytes: 35_735_663,
  member: 'package/llama/gitRelease.bundle',
  memberBytes: 35_273_016,
};
