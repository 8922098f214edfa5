// millrace limits set: changes the given limits of the account and keeps the others.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { addLimitOptions, type LimitOptions, toChangedLimits } from '#cli/keys/limit-options.ts';
import { report } from '#cli/output.ts';
import { type AccountLimits, viewLimits } from './show.ts';

export function setCommand(): Command {
  return addLimitOptions(
    new Command('set').description(
      'Change limits of the account; limits that are not given stay as they are',
    ),
  )
    .option('--json', 'Print JSON')
    .action(async ({ json, ...options }: LimitOptions & { json?: true }) => {
      const limits = toChangedLimits(options);
      const client = createClient('session');
      const account = await client.put<AccountLimits>('/dashboard/api/limits', limits);
      const { data, text } = await viewLimits(client, account);
      report(data, text, json);
    });
}
