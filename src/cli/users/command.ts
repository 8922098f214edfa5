// millrace users: the people in the account, and help for those who can't sign in.

import { Command } from 'commander';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';
import { resetCommand } from './reset.ts';

export function usersCommand(): Command {
  return new Command('users')
    .description('List and remove people, and reset passwords')
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addCommand(resetCommand());
}
