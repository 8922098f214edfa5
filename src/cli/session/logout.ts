// millrace logout: ends the session on the server and deletes it from this computer.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { forgetSession } from '#cli/credentials.ts';
import { report } from '#cli/output.ts';

export function logoutCommand(): Command {
  return new Command('logout')
    .description('Sign out and delete the saved session')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const client = createClient('session');
      try {
        await client.post('/dashboard/api/logout');
      } finally {
        forgetSession();
      }
      report({ url: client.url }, 'Signed out.', json);
    });
}
