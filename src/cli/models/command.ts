// millrace models: the models of the server and the weights on its disk.

import { Command } from 'commander';
import { listCommand } from './list.ts';
import { pullCommand } from './pull.ts';
import { removeCommand } from './remove.ts';
import { showCommand } from './show.ts';

export function modelsCommand(): Command {
  return new Command('models')
    .description('List models; pull and remove weights')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(pullCommand())
    .addCommand(removeCommand());
}
