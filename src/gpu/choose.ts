// Which published kernels run on this computer: it depends on the GPU, its driver, and the runtime libraries.

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { queryNvidiaSmi } from '#lib/computer/nvidia-smi.ts';
import { GpuError } from './errors.ts';
import type { KernelKind } from './packages.ts';

const execute = promisify(execFile);

/** Compute capabilities for which the CUDA 13 kernels have only PTX 9.1, and the first driver that can compile it. */
const ptxOnly = ['75', '80', '90'];
const ptxDriver = 590;

/** What a choice depends on. */
export interface Computer {
  /** Such as `linux-x64`. */
  readonly platform: string;
  /** Compute capabilities of NVIDIA GPUs, such as `90`. */
  readonly architectures: readonly string[];
  /** The major version of NVIDIA's driver; null if unknown. */
  readonly driver: number | null;
  /** Whether a GPU of any make can render. */
  readonly renders: boolean;
  /** Names of the shared libraries that the dynamic linker finds. */
  readonly libraries: ReadonlySet<string>;
}

/** Throws a GpuError that says what is missing. */
export function chooseKernels(computer: Computer): KernelKind {
  const { platform, architectures, libraries, renders } = computer;
  if (platform !== 'linux-x64')
    throw new GpuError(
      `Kernels are published for Linux on x86-64 only, and this is ${platform}. Macs need none. Elsewhere, use \`gpu build\`.`,
    );
  if (architectures.length > 0) return chooseCuda(computer);
  if (!renders)
    throw new GpuError('No GPU was found. If this computer has one, install its driver.');
  if (libraries.has('libvulkan.so.1')) return 'vulkan';
  throw new GpuError('Vulkan is missing. On Debian and Ubuntu, run `apt install libvulkan1`.');
}

function chooseCuda(computer: Computer): KernelKind {
  const has = (major: number) =>
    ['libcudart', 'libcublas'].every((name) => computer.libraries.has(`${name}.so.${major}`));
  if (has(13) && !needsNewerDriver(computer)) return 'cuda13';
  if (has(12)) return 'cuda12';
  throw new GpuError(
    has(13)
      ? `The driver ${computer.driver} is older than CUDA 13.1, which this GPU needs for the published kernels. Upgrade the driver, or use \`gpu build\`.`
      : "CUDA's runtime is missing: libcudart and libcublas, version 13 or 12. With NVIDIA's package repository, run `apt install cuda-libraries-13-1` or the newest that the driver supports.",
  );
}

/** The CUDA 13 kernels can't run, although the driver may support CUDA 13. */
const needsNewerDriver = ({ architectures, driver }: Computer): boolean =>
  driver !== null && driver < ptxDriver && architectures.some((one) => ptxOnly.includes(one));

export async function inspectComputer(): Promise<Computer> {
  const [architectures, driver, devices, libraries] = await Promise.all([
    readArchitectures(),
    readDriver(),
    readdir('/dev/dri').catch(() => []),
    readLibraries(),
  ]);
  return {
    platform: `${process.platform}-${process.arch}`,
    architectures,
    driver: driver === null ? null : Number.parseInt(driver, 10),
    renders: devices.some((name) => name.startsWith('renderD')),
    libraries,
  };
}

/** Reads the compute capabilities of this computer's NVIDIA GPUs, such as `90` for an H100. */
export async function readArchitectures(): Promise<string[]> {
  const lines = await queryNvidiaSmi('gpu', 'compute_cap').catch(() => []);
  const found = lines.map(([capability = '']) => /^(\d+)\.(\d+)$/.exec(capability));
  return [...new Set(found.flatMap((parts) => (parts === null ? [] : `${parts[1]}${parts[2]}`)))];
}

/** The version of NVIDIA's driver, such as `580.95.05`; null if there is none. */
export async function readDriver(): Promise<string | null> {
  const text = await readFile('/proc/driver/nvidia/version', 'utf8').catch(() => '');
  return / (\d+\.\d+(?:\.\d+)?) /.exec(text)?.[1] ?? null;
}

async function readLibraries(): Promise<Set<string>> {
  for (const program of ['ldconfig', '/sbin/ldconfig']) {
    const found = await execute(program, ['-p'], { maxBuffer: 16 * 2 ** 20 }).catch(() => null);
    if (found !== null)
      return new Set(
        [...found.stdout.matchAll(/^\s+(\S+) \(/gm)].map(([, name]) => name as string),
      );
  }
  return new Set();
}
