// millrace team list.

import { Command } from 'commander';
import type { Member } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { listAll, parseLimit } from '#cli/pages.ts';
import { addView } from '#cli/view.ts';
import { membersPath } from './find.ts';

export function listCommand(): Command {
  const command = new Command('list')
    .description('List the people in the account, newest first')
    .option('--limit <n>', 'Maximum number of people (default: all)', parseLimit);
  return addView(command, async ({ limit }: { limit?: number }) => {
    const data = await listAll<Member>(createClient('session'), membersPath, { limit });
    const rows = data.map(({ id, email, role, joined_at, api_keys }) => [
      id,
      email,
      role,
      joined_at.slice(0, 10),
      String(api_keys),
    ]);
    return { data, text: toTable('people', ['ID', 'EMAIL', 'ROLE', 'JOINED', 'API KEYS'], rows) };
  });
}
