// millrace limits: those of the account, which all its keys and people share.

import { Command } from 'commander';
import { setCommand } from './set.ts';
import { showCommand } from './show.ts';

export function limitsCommand(): Command {
  return new Command('limits')
    .description('show and change the limits of the account')
    .addCommand(showCommand())
    .addCommand(setCommand());
}
