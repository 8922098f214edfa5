// millrace keys limit: changes the given limits of a key and keeps the others.

import { Command } from 'commander';
import type { ApiKey } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { getItem } from '#cli/noun.ts';
import { printJson, printText } from '#cli/output.ts';
import { keys, keysPath } from './find.ts';
import {
  addLimitOptions,
  describeLimits,
  type LimitOptions,
  toChangedLimits,
} from './limit-options.ts';

export function limitCommand(): Command {
  const command = new Command('limit')
    .description('Change limits of an API key; limits that are not given stay as they are')
    .argument(...keys.argument);
  return addLimitOptions(command)
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json, ...options }: LimitOptions & { json?: true }) => {
      const limits = toChangedLimits(options);
      const client = createClient('session');
      const { id } = await getItem(keys, client, wanted);
      const key = await client.patch<ApiKey>(`${keysPath}/${id}`, { limits });
      if (json) return printJson(key);
      printText(`${key.label}: ${describeLimits(key.limits)}`);
    });
}
