// millrace models: what the server answers with, and the weights behind it.

import { Command } from 'commander';
import { listCommand } from './list.ts';
import { pullCommand } from './pull.ts';
import { removeCommand } from './remove.ts';
import { showCommand } from './show.ts';

export function modelsCommand(): Command {
  return new Command('models')
    .description('see the models on offer; pull and remove their weights')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(pullCommand())
    .addCommand(removeCommand());
}
