// millrace requests: single requests to models, and what became of them.

import { Command } from 'commander';
import { listCommand } from './list.ts';
import { showCommand } from './show.ts';

export function requestsCommand(): Command {
  return new Command('requests')
    .description('List and show single requests to models')
    .addCommand(listCommand())
    .addCommand(showCommand());
}
