// millrace keys list.

import { Command } from 'commander';
import type { ApiKey } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import { describeLimits } from './limit-options.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List the API keys of the account')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { data } = await createClient('session').get<{ data: ApiKey[] }>(
        '/dashboard/api/api-keys',
      );
      if (json) return printJson(data);
      printTable(
        ['ID', 'LABEL', 'KEY', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'LIMITS', 'THIS MONTH'],
        data.map((key) => [
          key.id,
          key.label,
          key.hint,
          key.scopes.join(','),
          toMinute(key.created_at),
          toMinute(key.expires_at),
          toMinute(key.last_used_at),
          describeLimits(key.limits),
          `$${key.spend.cost.toFixed(4)}`,
        ]),
      );
    });
}

const toMinute = (time: string | null) =>
  time === null ? 'never' : time.slice(0, 16).replace('T', ' ');
