// millrace hosts: the hosts that instances run on.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { checkCommand } from './check.ts';
import { drainCommand, resumeCommand } from './drain.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';

export function hostsCommand(): Command {
  return new Command('hosts')
    .description('List, add, check, drain and remove the hosts that instances run on')
    .addCommand(listCommand())
    .addCommand(addCommand())
    .addCommand(checkCommand())
    .addCommand(drainCommand())
    .addCommand(resumeCommand())
    .addCommand(removeCommand());
}
