// millrace logout: ends the session, here and on the server.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { forgetSession } from '#cli/credentials.ts';

export function logoutCommand(): Command {
  return new Command('logout').description('end the session').action(async () => {
    try {
      await createClient('session').post('/dashboard/api/logout');
    } finally {
      forgetSession();
    }
    console.log('Signed out.');
  });
}
