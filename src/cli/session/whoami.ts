// millrace whoami: prints the signed-in person and the server.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printText } from '#cli/output.ts';

export function whoamiCommand(): Command {
  return new Command('whoami')
    .description('Show who is signed in, and to which server')
    .action(async () => {
      const client = createClient('session');
      const { email, role } = await client.get<{ email: string; role: string }>(
        '/dashboard/api/me',
      );
      printText(`${email} (${role}) on ${client.url}`);
    });
}
