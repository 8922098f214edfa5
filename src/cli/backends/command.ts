// millrace backends: the servers that answer for each model, changed while Millrace runs.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { checkCommand } from './check.ts';
import { drainCommand, resumeCommand } from './drain.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';

export function backendsCommand(): Command {
  return new Command('backends')
    .description('List, add, check, drain and remove the backends of models')
    .addCommand(listCommand())
    .addCommand(addCommand())
    .addCommand(checkCommand())
    .addCommand(drainCommand())
    .addCommand(resumeCommand())
    .addCommand(removeCommand());
}
