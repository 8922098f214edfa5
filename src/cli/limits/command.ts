// millrace limits: the limits of the account, shared by all its keys and members.

import { Command } from 'commander';
import type { Limits, Spend } from '#accounts/schema.ts';
import { type Client, createClient } from '#cli/client.ts';
import {
  addLimitOptions,
  describeLimits,
  type LimitOptions,
  toChangedLimits,
} from '#cli/keys/limit-options.ts';
import { nounCommand } from '#cli/noun.ts';
import { report } from '#cli/output.ts';
import { describeSpend, readMonthlySpend } from '#cli/usage/spend.ts';
import { addView, type View } from '#cli/view.ts';
import { toCounted } from '#lib/text/format.ts';

export interface AccountLimits {
  limits: Limits;
  spend: Spend;
}

const path = '/dashboard/api/limits';

export const limitsCommand = (): Command =>
  nounCommand('limits', 'Show and change the limits of the account', [
    addView(
      new Command('show').description('Show the limits of the account and the spend of this month'),
      show,
    ),
    addLimitOptions(
      new Command('set').description(
        'Change limits of the account; limits that are not given stay as they are',
      ),
    )
      .option('--json', 'Print JSON')
      .action(set),
  ]);

async function show(): Promise<View> {
  const client = createClient('session');
  return toView(client, await client.get<AccountLimits>(path));
}

async function set({ json, ...options }: LimitOptions & { json?: true }): Promise<void> {
  const limits = toChangedLimits(options);
  const client = createClient('session');
  const { data, text } = await toView(client, await client.put<AccountLimits>(path, limits));
  report(data, text, json);
}

async function toView(client: Client, account: AccountLimits): Promise<View> {
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
