// millrace firewall: the inbound rules of all machines of the account.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { listCommand, nounCommand } from '#cli/noun.ts';
import { CliError } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { allowCommand } from './allow.ts';
import { columns, replaceRules, rules, toPorts } from './rules.ts';

export const firewallCommand = (): Command =>
  nounCommand('firewall', 'Show and change which traffic reaches machines', [
    listCommand(rules, { description: 'List the rules by their number', columns }),
    allowCommand(),
    new Command('remove')
      .description('Remove a rule')
      .argument('<number>', 'Number, from `millrace firewall list`', Number)
      .option('--yes', 'Do not ask for confirmation')
      .option('--json', 'Print JSON')
      .action(remove),
  ]);

async function remove(number: number, { yes, json }: { yes?: true; json?: true }): Promise<void> {
  const client = createClient('any');
  const all = await rules.read(client);
  const rule = all[number - 1];
  if (rule === undefined)
    throw new CliError('No rule has this number. See `millrace firewall list`.');
  const what = [rule.protocol, toPorts(rule), 'from', rule.source_network];
  await confirm(`Remove the rule for ${what.filter(Boolean).join(' ')}?`, yes);
  const others = all.filter((one) => one !== rule);
  await replaceRules(client, others, json);
}
