// Compiles llama.cpp's CUDA kernels for the GPUs of this computer, from its source, which the npm
// registry has. On T4, A100, H100 and H200 the published ones need a driver of CUDA 13.1 or later:
// for these chips they contain only PTX 9.1.

import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { readArchitectures } from './choose.ts';
import { cleanGpuFolder } from './clean.ts';
import { downloadMember } from './download.ts';
import { GpuError } from './errors.ts';
import { cudaLibrary, gpuFolder, kernelsFolder } from './kernels.ts';
import { sourcePackage } from './packages.ts';

const execute = promisify(execFile);

export interface BuildOptions {
  readonly dataDir: string;
  /** Compute capabilities such as `90`. If empty, those of this computer's GPUs. */
  readonly architectures: readonly string[];
  /** Registry that has the source; null for the one that npm is configured to use. */
  readonly registry: string | null;
  /** Called with each line that the compilers print. */
  readonly onLine: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface BuiltKernels {
  readonly file: string;
  readonly architectures: readonly string[];
}

/** Kernels that were built before are replaced once the new ones are complete. */
export async function buildKernels(options: BuildOptions): Promise<BuiltKernels> {
  const { dataDir, registry, onLine, signal } = options;
  cleanGpuFolder(dataDir);
  // Checked before the tools, which are not needed without a GPU.
  const architectures =
    options.architectures.length > 0 ? options.architectures : await requireArchitectures();
  const compiler = await requireTools();
  mkdirSync(gpuFolder(dataDir), { recursive: true, mode: 0o700 });
  const folder = mkdtempSync(join(gpuFolder(dataDir), `build-${process.pid}-`));
  try {
    const [source, output] = [join(folder, 'source'), join(folder, 'output')];
    const bundle = join(folder, 'source.bundle');
    const progress = (bytes: number) =>
      onLine(`Downloading the source: ${Math.floor((bytes / sourcePackage.bytes) * 100)} %`);
    await downloadMember(sourcePackage, bundle, { dataDir, registry, progress, signal });
    await run('git', ['clone', '--quiet', bundle, source], options);
    const settings = [...cmakeSettings, `-DCMAKE_CUDA_ARCHITECTURES=${architectures.join(';')}`];
    const chosen = compiler === null ? [] : [`-DCMAKE_CUDA_COMPILER=${compiler}`];
    await run('cmake', ['-S', source, '-B', output, ...settings, ...chosen], options);
    const jobs = String(availableParallelism());
    await run('cmake', ['--build', output, '--target', 'ggml-cuda', '--parallel', jobs], options);
    const file = join(kernelsFolder(dataDir), cudaLibrary);
    mkdirSync(dirname(file), { recursive: true });
    renameSync(join(output, 'bin', cudaLibrary), file);
    return { file, architectures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As the libraries in the package were built, so that they accept the kernels. */
const cmakeSettings = [
  '-DCMAKE_BUILD_TYPE=Release',
  '-DGGML_CUDA=ON',
  '-DGGML_NATIVE=OFF',
  '-DGGML_BACKEND_DL=ON',
  '-DBUILD_SHARED_LIBS=ON',
  '-DLLAMA_BUILD_TESTS=OFF',
  '-DLLAMA_BUILD_EXAMPLES=OFF',
  '-DLLAMA_BUILD_TOOLS=OFF',
  '-DLLAMA_BUILD_SERVER=OFF',
  '-DLLAMA_OPENSSL=OFF',
  '-DGGML_CUDA_NCCL=OFF',
  // The package's libraries have no version in their names.
  '-DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON',
  '-DCMAKE_SKIP_RPATH=ON',
];

/** Where NVIDIA's packages install the toolkit, without adding it to the search path. */
const usualCompiler = '/usr/local/cuda/bin/nvcc';

/** Returns the path of nvcc; null if it is in the search path. */
async function requireTools(): Promise<string | null> {
  const missing: string[] = [];
  for (const tool of ['git', 'cmake', 'c++']) if (!(await canRun(tool))) missing.push(tool);
  const hasCompiler = await canRun('nvcc');
  if (!hasCompiler && !existsSync(usualCompiler)) missing.push('nvcc');
  if (missing.length === 0) return hasCompiler ? null : usualCompiler;
  const needsToolkit = missing.includes('nvcc');
  const advice = [
    ...(missing.length > (needsToolkit ? 1 : 0)
      ? ['On Debian and Ubuntu, run `apt install git cmake g++`.']
      : []),
    ...(needsToolkit
      ? ["nvcc is part of NVIDIA's CUDA toolkit. Its version must not be newer than the driver's."]
      : []),
  ];
  throw new GpuError(`These programs are missing: ${missing.join(', ')}. ${advice.join(' ')}`);
}

const canRun = (tool: string) =>
  execute(tool, ['--version']).then(
    () => true,
    () => false,
  );

async function requireArchitectures(): Promise<string[]> {
  const found = await readArchitectures();
  if (found.length > 0) return found;
  throw new GpuError(
    'No NVIDIA GPU was found. If this computer has one, install its driver. To build for another computer, name the compute capability of its GPU: --arch 90 for an H100 or H200, 80 for an A100, 75 for a T4.',
  );
}

/** Runs a program until it exits, and hands on the lines that it prints. */
async function run(
  program: string,
  args: readonly string[],
  { onLine, signal }: BuildOptions,
): Promise<void> {
  signal.throwIfAborted();
  // A group of its own: a signal must reach the compilers that cmake has started, too.
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const stop = () => process.kill(-(child.pid as number), 'SIGTERM');
  signal.addEventListener('abort', stop, { once: true });
  const last: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      if (last.push(line) > 20) last.shift();
      onLine(line);
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  }).finally(() => signal.removeEventListener('abort', stop));
  signal.throwIfAborted();
  if (code !== 0) throw new GpuError(`${program} failed with status ${code}:\n${last.join('\n')}`);
}
