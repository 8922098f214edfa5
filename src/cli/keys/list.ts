// millrace keys list.

import { Command } from 'commander';
import type { ApiKey } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import { listAll, parseLimit } from '#cli/pages.ts';
import { toMinute } from '#cli/time.ts';
import { toMoney } from '#lib/format.ts';
import { describeLimits } from './limit-options.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List the API keys of the account, newest first')
    .option('--limit <n>', 'Maximum number of keys (default: all)', parseLimit)
    .option('--json', 'Print JSON')
    .action(async ({ limit, json }: { limit?: number; json?: true }) => {
      const client = createClient('session');
      const data = await listAll<ApiKey>(client, '/dashboard/api/api-keys', { limit });
      if (json) return printJson(data);
      printTable(
        [
          'ID',
          'LABEL',
          'KEY',
          'SCOPES',
          'CREATED',
          'CREATED BY',
          'EXPIRES',
          'LAST USED',
          'LIMITS',
          'THIS MONTH',
        ],
        data.map((key) => [
          key.id,
          key.label,
          key.hint,
          key.scopes.join(','),
          toMinute(key.created_at),
          toCreator(key),
          toMinuteOrNever(key.expires_at),
          toMinuteOrNever(key.last_used_at),
          describeLimits(key.limits),
          toMoney(key.spend.cost),
        ]),
      );
    });
}

const toCreator = ({ created_by: by }: ApiKey) =>
  by === null ? 'server' : (by.email ?? 'a former member');

const toMinuteOrNever = (time: string | null) => (time === null ? 'never' : toMinute(time));
