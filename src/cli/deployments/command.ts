// millrace deployments: models that the server runs by itself.

import { Command } from 'commander';
import { actionCommands, removeCommand, scaleCommand, updateCommand } from './change.ts';
import { fitsCommand } from './fits.ts';
import { listCommand, logsCommand, showCommand } from './show.ts';

export function deploymentsCommand(): Command {
  const command = new Command('deployments')
    .description('List, change, stop and remove deployments; `millrace deploy` adds one')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(logsCommand())
    .addCommand(fitsCommand())
    .addCommand(updateCommand())
    .addCommand(scaleCommand());
  for (const action of actionCommands()) command.addCommand(action);
  return command.addCommand(removeCommand());
}
