// millrace ssh-keys: the SSH keys that launched instances accept.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { deleteCommand } from './delete.ts';
import { generateCommand } from './generate.ts';
import { listCommand } from './list.ts';

export function sshKeysCommand(): Command {
  return new Command('ssh-keys')
    .description('Add, generate, list and delete SSH keys')
    .addCommand(addCommand())
    .addCommand(generateCommand())
    .addCommand(listCommand())
    .addCommand(deleteCommand());
}
