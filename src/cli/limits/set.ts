// millrace limits set: changes the limits of the account; what is not named stays.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { addLimitOptions, type LimitOptions, toLimits } from '#cli/keys/limit-options.ts';
import { CliError, printJson } from '#cli/output.ts';
import { type AccountLimits, printLimits } from './show.ts';

export function setCommand(): Command {
  return addLimitOptions(new Command('set').description('change the limits of the account'))
    .option('--json', 'print JSON')
    .action(async ({ json, ...options }: LimitOptions & { json?: true }) => {
      const limits = toLimits(options);
      if (Object.keys(limits).length === 0) {
        throw new CliError('Name a limit, such as --requests-per-minute 60 or --budget none.', 2);
      }
      const client = createClient('session');
      const account = await client.put<AccountLimits>('/dashboard/api/limits', limits);
      if (json) return printJson(account);
      printLimits(account);
    });
}
