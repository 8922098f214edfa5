// millrace backends: what answers for each model, and changes to that while the server runs.

import { Command } from 'commander';
import { addCommand } from './add.ts';
import { checkCommand } from './check.ts';
import { drainCommand, resumeCommand } from './drain.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';

export function backendsCommand(): Command {
  return new Command('backends')
    .description('see, add, drain and remove what answers for a model')
    .addCommand(listCommand())
    .addCommand(addCommand())
    .addCommand(checkCommand())
    .addCommand(drainCommand())
    .addCommand(resumeCommand())
    .addCommand(removeCommand());
}
