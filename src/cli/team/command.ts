// millrace team: the people in the account, and help for those who can't sign in.

import { Command } from 'commander';
import { inviteCommand } from './invite.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';
import { resetCommand } from './reset.ts';
import { roleCommand } from './role.ts';

export function teamCommand(): Command {
  return new Command('team')
    .alias('users')
    .description('List, invite and remove people, change their roles, and reset passwords')
    .addCommand(listCommand())
    .addCommand(inviteCommand())
    .addCommand(roleCommand())
    .addCommand(removeCommand())
    .addCommand(resetCommand());
}
