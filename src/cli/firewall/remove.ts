// millrace firewall remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { readRules, replaceRules, toPorts } from './rules.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a rule')
    .argument('<number>', 'Number, from `millrace firewall list`', Number)
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (number: number, { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('any');
      const rules = await readRules(client);
      const rule = rules[number - 1];
      if (rule === undefined)
        throw new CliError('No rule has this number. See `millrace firewall list`.');
      const what = [rule.protocol, toPorts(rule), 'from', rule.source_network];
      await confirm(`Remove the rule for ${what.filter(Boolean).join(' ')}?`, yes);
      await replaceRules(
        client,
        rules.filter((one) => one !== rule),
        json,
      );
    });
}
