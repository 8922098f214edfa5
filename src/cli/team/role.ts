// millrace team role: changes what a person may do.

import { Argument, Command } from 'commander';
import { type Role, roles } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { getMember, membersPath } from './find.ts';

interface Changed {
  /** Keys of the person that the change of the role affects. */
  api_keys: { id: string; label: string }[];
}

export function roleCommand(): Command {
  return new Command('role')
    .description('Change the role of a person')
    .argument('<email>', 'Email address, id or its first characters, from `millrace team list`')
    .addArgument(new Argument('<role>', 'New role').choices(roles))
    .option('--json', 'Print JSON')
    .action(async (wanted: string, role: Role, { json }: { json?: true }) => {
      const client = createClient('session');
      const { id, email } = await getMember(client, wanted);
      const { api_keys } = await client.patch<Changed>(`${membersPath}/${id}`, { role });
      const lines = [`${email} is now ${role}.`];
      if (api_keys.length > 0) {
        lines.push(
          `API keys that ${role === 'viewer' ? 'can only read now' : 'can be used again'}:`,
        );
        lines.push(...api_keys.map((key) => `  ${key.label} (${key.id})`));
      }
      report({ id, email, role, api_keys }, lines.join('\n'), json);
    });
}
