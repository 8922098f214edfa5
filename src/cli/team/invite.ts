// millrace team invite: creates a link with which one person joins the account.

import { Argument, Command } from 'commander';
import { type Role, roles } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { printJson, printText } from '#cli/output.ts';
import { toMinute } from '#cli/time.ts';

export function inviteCommand(): Command {
  return new Command('invite')
    .description('Create a link with which one person joins the account')
    .addArgument(new Argument('[role]', 'Role of the person').choices(roles).default('member'))
    .option('--json', 'Print JSON')
    .action(async (role: Role, { json }: { json?: true }) => {
      const made = await createClient('session').post<{ link: string; expires_at: string }>(
        '/dashboard/api/invitations',
        { role },
      );
      if (json) return printJson(made);
      printText(made.link);
      console.error(`It works once, until ${toMinute(made.expires_at)} UTC.`);
    });
}
