// millrace firewall list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson } from '#cli/output.ts';
import { printRules, readRules } from './rules.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List the rules by their number')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const rules = await readRules(createClient('any'));
      if (json) return printJson(rules);
      printRules(rules);
    });
}
