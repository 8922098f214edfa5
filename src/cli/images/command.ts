// millrace images: what machines on LXD and Incus hosts can boot.

import { Command } from 'commander';
import { buildCommand } from './build.ts';
import { importCommand } from './import.ts';
import { listCommand } from './list.ts';

export function imagesCommand(): Command {
  return new Command('images')
    .description('see, import and build the images that hosts boot machines from')
    .addCommand(listCommand())
    .addCommand(importCommand())
    .addCommand(buildCommand());
}
