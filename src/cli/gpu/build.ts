// millrace gpu build: compiles the CUDA kernels of models for this computer's GPUs.

import { Command } from 'commander';
import { CliError, report } from '#cli/output.ts';
import { createPlainLines } from '#cli/progress.ts';
import {
  findInstallation,
  type InstallationOptions,
  withDataDirectory,
} from '#cli/server/installation.ts';
import { GpuError } from '#gpu/errors.ts';

export function gpuBuildCommand(): Command {
  const build = new Command('build')
    .description("Compile the CUDA kernels of models for this computer's GPUs (about five minutes)")
    .option(
      '--arch <capability...>',
      'Compute capabilities, such as 90 (default: those of the GPUs here)',
    )
    .option(
      '--registry <url>',
      "npm registry of llama.cpp's source (default: the one that npm uses)",
    )
    .option('--json', 'Print JSON');
  return withDataDirectory(build)
    .addHelpText(
      'after',
      '\nNeeded on T4, A100, H100 and H200 if the driver is older than CUDA 13.1. Needs git, cmake, a C++ compiler and\nthe CUDA toolkit. The result is kept in the data directory. Run it again after an upgrade of Millrace.',
    )
    .action(buildHere);
}

type Options = InstallationOptions & { arch?: string[]; registry?: string; json?: true };

async function buildHere(options: Options): Promise<void> {
  const architectures = options.arch ?? [];
  const wrong = architectures.find((one) => !/^\d{2,3}a?$/.test(one));
  if (wrong !== undefined) throw new CliError(`--arch must be a number such as 90, got ${wrong}.`);
  const { data_dir: dataDir } = findInstallation(options);
  const { buildKernels } = await import('#gpu/build.ts');
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => controller.abort());
  const lines = createPlainLines(process.stderr);
  try {
    const built = await buildKernels({
      dataDir,
      architectures,
      registry: options.registry ?? null,
      onLine: (line) => lines.show(line.trim()),
      signal: controller.signal,
    });
    lines.end();
    report(
      { architectures: built.architectures, file: built.file },
      `Built kernels for compute capability ${built.architectures.join(', ')}: ${built.file}.\nModels use them from their next load on; no restart is needed.`,
      options.json,
    );
  } catch (error) {
    if (controller.signal.aborted) throw new CliError('Interrupted. Nothing was changed.', 130);
    if (error instanceof GpuError) throw new CliError(error.message);
    throw error;
  }
}
