// millrace limits set: changes the given limits of the account and keeps the others.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { addLimitOptions, type LimitOptions, toLimits } from '#cli/keys/limit-options.ts';
import { CliError, printJson } from '#cli/output.ts';
import { type AccountLimits, printLimits } from './show.ts';

export function setCommand(): Command {
  return addLimitOptions(
    new Command('set').description(
      'Change limits of the account; limits that are not given stay as they are',
    ),
  )
    .option('--json', 'Print JSON')
    .action(async ({ json, ...options }: LimitOptions & { json?: true }) => {
      const limits = toLimits(options);
      if (Object.keys(limits).length === 0) {
        throw new CliError(
          'Give at least one limit, such as --requests-per-minute 60 or --budget none.',
          2,
        );
      }
      const client = createClient('session');
      const account = await client.put<AccountLimits>('/dashboard/api/limits', limits);
      if (json) return printJson(account);
      printLimits(account);
    });
}
