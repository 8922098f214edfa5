// millrace team role: changes what a person may do.

import { Argument, Command } from 'commander';
import { type Role, roles } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { toPrintable } from '#cli/output.ts';
import { getMember, membersPath } from './find.ts';

export function roleCommand(): Command {
  return new Command('role')
    .description('Change the role of a person')
    .argument('<email>', 'Email address or id, from `millrace team list`')
    .addArgument(new Argument('<role>', 'New role').choices(roles))
    .action(async (wanted: string, role: Role) => {
      const client = createClient('session');
      const { id, email } = await getMember(client, wanted);
      await client.patch(`${membersPath}/${id}`, { role });
      console.log(`${toPrintable(email)} is now ${role}.`);
    });
}
