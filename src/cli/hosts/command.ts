// millrace hosts: what machines are placed on.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { checkCommand } from './check.ts';
import { drainCommand, resumeCommand } from './drain.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';

export function hostsCommand(): Command {
  return new Command('hosts')
    .description('add, check, drain and remove the hosts that machines run on')
    .addCommand(listCommand())
    .addCommand(addCommand())
    .addCommand(checkCommand())
    .addCommand(drainCommand())
    .addCommand(resumeCommand())
    .addCommand(removeCommand());
}
