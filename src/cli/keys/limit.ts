// millrace keys limit: changes the limits of a key; what is not named stays.

import { Command } from 'commander';
import type { ApiKey } from '#accounts/schema.ts';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import { addLimitOptions, describeLimits, type LimitOptions, toLimits } from './limit-options.ts';

export function limitCommand(): Command {
  const command = new Command('limit')
    .description('change the limits of a key')
    .argument('<key>', 'its id or label, from `millrace keys list`');
  return addLimitOptions(command)
    .option('--json', 'print JSON')
    .action(async (name: string, { json, ...options }: LimitOptions & { json?: true }) => {
      const limits = toLimits(options);
      if (Object.keys(limits).length === 0) {
        throw new CliError('Name a limit, such as --requests-per-minute 60 or --budget none.', 2);
      }
      const client = createClient('session');
      const { id } = await findKey(client, name);
      const key = await client.patch<ApiKey>(`/dashboard/api/api-keys/${id}`, { limits });
      if (json) return printJson(key);
      console.log(`${key.label}: ${describeLimits(key.limits)}`);
    });
}

async function findKey(client: Client, name: string): Promise<ApiKey> {
  const { data } = await client.get<{ data: ApiKey[] }>('/dashboard/api/api-keys');
  const found = data.filter(({ id, label }) => id === name || label === name);
  const [key] = found;
  if (key === undefined) throw new CliError(`No key has the id or label "${name}".`);
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(', ');
    throw new CliError(`Several keys are called "${name}". Name one by its id: ${ids}`);
  }
  return key;
}
