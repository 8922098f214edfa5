// millrace keys: the API keys of the account.

import { Command } from 'commander';
import { createCommand } from './create.ts';
import { limitCommand } from './limit.ts';
import { listCommand } from './list.ts';
import { revokeCommand } from './revoke.ts';

export function keysCommand(): Command {
  return new Command('keys')
    .description('Create, list, limit and revoke API keys')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(limitCommand())
    .addCommand(revokeCommand());
}
