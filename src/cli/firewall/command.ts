// millrace firewall: the inbound rules of all machines of the account.

import { Command } from 'commander';
import { allowCommand } from './allow.ts';
import { listCommand } from './list.ts';
import { removeCommand } from './remove.ts';

export function firewallCommand(): Command {
  return new Command('firewall')
    .description('Show and change which traffic reaches machines')
    .addCommand(listCommand())
    .addCommand(allowCommand())
    .addCommand(removeCommand());
}
