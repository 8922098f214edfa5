// millrace whoami: the person and the server.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';

export function whoamiCommand(): Command {
  return new Command('whoami').description('show who is signed in, and where').action(async () => {
    const client = createClient('session');
    const { email, role } = await client.get<{ email: string; role: string }>('/dashboard/api/me');
    console.log(`${email} (${role}) on ${client.url}`);
  });
}
