// millrace context: names for several servers, each with its own sign-in or API key.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';
import { chooseCommand } from './use.ts';

export function contextCommand(): Command {
  return new Command('context')
    .description('Name several servers, and choose the one that commands talk to')
    .addCommand(listCommand())
    .addCommand(addCommand())
    .addCommand(chooseCommand())
    .addCommand(removeCommand());
}
