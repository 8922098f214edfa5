// millrace logout: ends the session on the server and deletes it from this computer.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { forgetSession } from '#cli/credentials.ts';

export function logoutCommand(): Command {
  return new Command('logout')
    .description('Sign out and delete the saved session')
    .action(async () => {
      try {
        await createClient('session').post('/dashboard/api/logout');
      } finally {
        forgetSession();
      }
      console.log('Signed out.');
    });
}
