// millrace models: the models of the server and the weights on its disk.

import type { Command } from 'commander';
import { nounCommand } from '#cli/noun.ts';
import { listCommand } from './list.ts';
import { pullCommand } from './pull.ts';
import { removeCommand } from './remove.ts';
import { showCommand } from './show.ts';
import { standInCommand } from './stand-in.ts';

export const modelsCommand = (): Command =>
  nounCommand('models', 'List models; pull and remove weights', [
    listCommand(),
    showCommand(),
    pullCommand(),
    removeCommand(),
    standInCommand(),
  ]);
