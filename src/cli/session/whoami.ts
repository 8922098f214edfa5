// millrace whoami: prints the signed-in person and the server.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { addView } from '#cli/view.ts';

export const whoamiCommand = (): Command =>
  addView(
    new Command('whoami').description('Show who is signed in, and to which server'),
    async () => {
      const client = createClient('session');
      const me = await client.get<{ email: string; role: string }>('/dashboard/api/me');
      return {
        data: { ...me, url: client.url },
        text: `${me.email} (${me.role}) on ${client.url}`,
      };
    },
  );
