// millrace instances: from launch to termination.

import { Command } from 'commander';
import { launchCommand } from './launch.ts';
import { listCommand } from './list.ts';
import { logsCommand } from './logs.ts';
import { renameCommand } from './rename.ts';
import { restartCommand } from './restart.ts';
import { showCommand } from './show.ts';
import { sshCommand } from './ssh.ts';
import { terminateCommand } from './terminate.ts';
import { typesCommand } from './types.ts';

export function instancesCommand(): Command {
  return new Command('instances')
    .description(
      'Launch, list, show, rename, restart and terminate instances, and connect to them by SSH',
    )
    .addCommand(typesCommand())
    .addCommand(launchCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(renameCommand())
    .addCommand(logsCommand())
    .addCommand(sshCommand())
    .addCommand(restartCommand())
    .addCommand(terminateCommand());
}
