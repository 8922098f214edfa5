// millrace team role: changes what a person may do.

import { Argument, Command } from 'commander';
import { type Role, roles } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { getMember, membersPath } from './find.ts';

export function roleCommand(): Command {
  return new Command('role')
    .description('Change the role of a person')
    .argument('<email>', 'Email address, id or its first characters, from `millrace team list`')
    .addArgument(new Argument('<role>', 'New role').choices(roles))
    .option('--json', 'Print JSON')
    .action(async (wanted: string, role: Role, { json }: { json?: true }) => {
      const client = createClient('session');
      const { id, email } = await getMember(client, wanted);
      await client.patch(`${membersPath}/${id}`, { role });
      report({ id, email, role }, `${email} is now ${role}.`, json);
    });
}
