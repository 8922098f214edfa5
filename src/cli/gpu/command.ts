// millrace gpu: kernels with which models run on this computer's GPU.

import { Command } from 'commander';
import { gpuBuildCommand } from './build.ts';
import { gpuInstallCommand } from './install.ts';

export const gpuCommand = (): Command =>
  new Command('gpu')
    .description("Download or compile the kernels with which models run on this computer's GPU")
    .addCommand(gpuInstallCommand())
    .addCommand(gpuBuildCommand());
