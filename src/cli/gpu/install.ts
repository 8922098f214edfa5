// millrace gpu install: downloads published kernels for this computer's GPU.

import { Command, Option } from 'commander';
import { CliError, report } from '#cli/output.ts';
import { startByteProgress } from '#cli/progress.ts';
import {
  findInstallation,
  type InstallationOptions,
  withDataDirectory,
} from '#cli/server/installation.ts';
import { GpuError } from '#gpu/errors.ts';
import { type KernelKind, kernelPackages } from '#gpu/packages.ts';

export function gpuInstallCommand(): Command {
  const install = new Command('install')
    .description("Download the kernels of models for this computer's GPU")
    .addOption(
      new Option('--kernels <kind>', 'Which ones (default: those that fit the GPU)').choices(
        Object.keys(kernelPackages),
      ),
    )
    .option('--registry <url>', 'npm registry (default: the one that npm uses)')
    .option('--json', 'Print JSON');
  return withDataDirectory(install)
    .addHelpText(
      'after',
      '\nThe kernels are kept in the data directory. A download that was interrupted continues where it stopped. Run it\nagain after an upgrade of Millrace that brings another release of llama.cpp.',
    )
    .action(installHere);
}

type Options = InstallationOptions & { kernels?: KernelKind; registry?: string; json?: true };

async function installHere(options: Options): Promise<void> {
  const { data_dir: dataDir } = findInstallation(options);
  // Loaded here: other commands need neither them nor what they import.
  const { chooseKernels, inspectComputer } = await import('#gpu/choose.ts');
  const { installKernels } = await import('#gpu/install.ts');
  try {
    const kind = options.kernels ?? chooseKernels(await inspectComputer());
    const wanted = kernelPackages[kind];
    const bar = await startByteProgress(wanted.bytes, {
      onInterrupt: 'Interrupted. Run the command again to continue the download.',
    });
    const file = await installKernels(wanted, {
      dataDir,
      registry: options.registry ?? null,
      progress: (bytes) => bar.show(bytes),
      signal: new AbortController().signal,
    }).finally(() => bar.end());
    report(
      { kernels: kind, file },
      `Installed ${kind} kernels: ${file}.\nModels use them from their next load on; no restart is needed.`,
      options.json,
    );
  } catch (error) {
    if (error instanceof GpuError) throw new CliError(error.message);
    throw error;
  }
}
