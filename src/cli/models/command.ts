// millrace models: what the server answers with.

import { Command } from 'commander';
import { listCommand } from './list.ts';

export function modelsCommand(): Command {
  return new Command('models').description('see the models on offer').addCommand(listCommand());
}
