// millrace team list.

import { Command } from 'commander';
import type { Member } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import { listAll, parseLimit } from '#cli/pages.ts';
import { membersPath } from './find.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List the people in the account, newest first')
    .option('--limit <n>', 'Maximum number of people (default: all)', parseLimit)
    .option('--json', 'Print JSON')
    .action(async ({ limit, json }: { limit?: number; json?: true }) => {
      const data = await listAll<Member>(createClient('session'), membersPath, { limit });
      if (json) return printJson(data);
      printTable(
        ['ID', 'EMAIL', 'ROLE', 'JOINED', 'API KEYS'],
        data.map(({ id, email, role, joined_at, api_keys }) => [
          id,
          email,
          role,
          joined_at.slice(0, 10),
          String(api_keys),
        ]),
      );
    });
}
