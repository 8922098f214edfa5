// millrace keys list.

import { Command } from 'commander';
import type { ApiKey } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { listAll, parseLimit } from '#cli/pages.ts';
import { toMinute } from '#cli/time.ts';
import { addView } from '#cli/view.ts';
import { toMoney } from '#lib/text/format.ts';
import { keysPath } from './find.ts';
import { describeLimits } from './limit-options.ts';

const headers = [
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
];

const spare = ['KEY', 'CREATED BY', 'CREATED', 'SCOPES', 'LIMITS', 'EXPIRES'];

export function listCommand(): Command {
  const command = new Command('list')
    .description('List the API keys of the account, newest first')
    .option('--limit <n>', 'Maximum number of keys (default: all)', parseLimit);
  return addView(command, async ({ limit }: { limit?: number }) => {
    const data = await listAll<ApiKey>(createClient('session'), keysPath, { limit });
    const rows = data.map((key) => [
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
    ]);
    return { data, text: toTable('API keys', headers, rows, spare) };
  });
}

const toCreator = ({ created_by: by }: ApiKey) =>
  by === null ? 'server' : (by.email ?? 'a former member');

const toMinuteOrNever = (time: string | null) => (time === null ? 'never' : toMinute(time));
