// millrace users: help for people who can't sign in. Runs on the server's computer, with access to its database.

import { Command } from 'commander';
import { resetCommand } from './reset.ts';

export function usersCommand(): Command {
  return new Command('users').description('Reset passwords').addCommand(resetCommand());
}
