// millrace batches: requests in a file, run without a client.

import { Command } from 'commander';
import { cancelCommand } from './cancel.ts';
import { createCommand } from './create.ts';
import { listCommand } from './list.ts';
import { resultsCommand } from './results.ts';
import { showCommand } from './show.ts';

export function batchesCommand(): Command {
  return new Command('batches')
    .description('Run the requests in a file as a batch, at a lower price')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(resultsCommand())
    .addCommand(cancelCommand());
}
