// millrace ssh-keys: the keys that launched machines accept.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { deleteCommand } from './delete.ts';
import { generateCommand } from './generate.ts';
import { listCommand } from './list.ts';

export function sshKeysCommand(): Command {
  return new Command('ssh-keys')
    .description('add, generate, list and delete SSH keys')
    .addCommand(addCommand())
    .addCommand(generateCommand())
    .addCommand(listCommand())
    .addCommand(deleteCommand());
}
