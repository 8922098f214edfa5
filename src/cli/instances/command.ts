// millrace instances: from launch to termination.

import { Command } from 'commander';
import { launchCommand } from './launch.ts';
import { listCommand } from './list.ts';
import { restartCommand } from './restart.ts';
import { sshCommand } from './ssh.ts';
import { terminateCommand } from './terminate.ts';
import { typesCommand } from './types.ts';

export function instancesCommand(): Command {
  return new Command('instances')
    .description('Launch, list, restart and terminate instances, and connect to them by SSH')
    .addCommand(typesCommand())
    .addCommand(launchCommand())
    .addCommand(listCommand())
    .addCommand(sshCommand())
    .addCommand(restartCommand())
    .addCommand(terminateCommand());
}
