// millrace deployments: models that the server runs by itself.

import type { Command } from 'commander';
import { nounCommand } from '#cli/noun.ts';
import { actionCommands, removeCommand, scaleCommand, updateCommand } from './change.ts';
import { fitsCommand } from './fits.ts';
import { listDeployments, logsCommand, showCommand } from './show.ts';

export const deploymentsCommand = (): Command =>
  nounCommand(
    'deployments',
    'List, change, stop and remove deployments; `millrace deploy` adds one',
    [
      listDeployments(),
      showCommand(),
      logsCommand(),
      fitsCommand(),
      updateCommand(),
      scaleCommand(),
      ...actionCommands(),
      removeCommand(),
    ],
  );
