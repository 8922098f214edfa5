// millrace images: the images that LXD and Incus hosts boot instances from.

import { Command } from 'commander';
import { buildCommand } from './build.ts';
import { importCommand } from './import.ts';
import { listCommand } from './list.ts';

export function imagesCommand(): Command {
  return new Command('images')
    .description('List, import and build the images that hosts boot instances from')
    .addCommand(listCommand())
    .addCommand(importCommand())
    .addCommand(buildCommand());
}
