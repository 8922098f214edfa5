// millrace filesystems: storage that outlives instances.

import { Command } from 'commander';
import { createCommand } from './create.ts';
import { deleteCommand } from './delete.ts';
import { listCommand } from './list.ts';

export function filesystemsCommand(): Command {
  return new Command('filesystems')
    .description('Create, list and delete filesystems')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(deleteCommand());
}
