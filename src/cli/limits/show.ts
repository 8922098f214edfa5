// millrace limits show.

import { Command } from 'commander';
import type { Limits, Spend } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { describeLimits } from '#cli/keys/limit-options.ts';
import { printJson } from '#cli/output.ts';
import { toCounted, toMoney } from '#lib/format.ts';

export interface AccountLimits {
  limits: Limits;
  spend: Spend;
}

export function showCommand(): Command {
  return new Command('show')
    .description('Show the limits of the account and the spend of this month')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const account = await createClient('session').get<AccountLimits>('/dashboard/api/limits');
      if (json) return printJson(account);
      printLimits(account);
    });
}

export function printLimits({ limits, spend }: AccountLimits): void {
  console.log(`Limits: ${describeLimits(limits)}`);
  const { month, cost, requests, tokens } = spend;
  console.log(
    `${month}: ${toMoney(cost)} for ${toCounted(requests, 'request')} and ${toCounted(tokens, 'token')}`,
  );
}
