// millrace limits show.

import { Command } from 'commander';
import type { Limits, Spend } from '#accounts/schema.ts';
import { type Client, createClient } from '#cli/client.ts';
import { describeLimits } from '#cli/keys/limit-options.ts';
import { describeSpend, readMonthlySpend } from '#cli/usage/spend.ts';
import { addView, type View } from '#cli/view.ts';
import { toCounted } from '#lib/text/format.ts';

export interface AccountLimits {
  limits: Limits;
  spend: Spend;
}

export const showCommand = (): Command =>
  addView(
    new Command('show').description('Show the limits of the account and the spend of this month'),
    async () => {
      const client = createClient('session');
      return viewLimits(client, await client.get<AccountLimits>('/dashboard/api/limits'));
    },
  );

export async function viewLimits(client: Client, account: AccountLimits): Promise<View> {
  const total = await readMonthlySpend(client, account.spend);
  const { month, requests, tokens } = account.spend;
  return {
    data: { ...account, total },
    text: [
      `Limits: ${describeLimits(account.limits)}`,
      `${month} ${describeSpend(total)}`,
      `${toCounted(requests, 'request')} and ${toCounted(tokens, 'token')}`,
    ].join('\n'),
  };
}
