// millrace limits: the limits of the account, shared by all its keys and members.

import { Command } from 'commander';
import { setCommand } from './set.ts';
import { showCommand } from './show.ts';

export function limitsCommand(): Command {
  return new Command('limits')
    .description('Show and change the limits of the account')
    .addCommand(showCommand())
    .addCommand(setCommand());
}
