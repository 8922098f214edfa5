// millrace firewall list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { addView } from '#cli/view.ts';
import { readRules, renderRules } from './rules.ts';

export const listCommand = (): Command =>
  addView(new Command('list').description('List the rules by their number'), async () => {
    const data = await readRules(createClient('any'));
    return { data, text: renderRules(data) };
  });
