// millrace gpu: kernels with which models run on this computer's GPU.

import type { Command } from 'commander';
import { nounCommand } from '#cli/noun.ts';
import { gpuBuildCommand } from './build.ts';
import { gpuInstallCommand } from './install.ts';

export const gpuCommand = (): Command =>
  nounCommand(
    'gpu',
    "Download or compile the kernels with which models run on this computer's GPU",
    [gpuInstallCommand(), gpuBuildCommand()],
  );
