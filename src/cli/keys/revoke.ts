// millrace keys revoke.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { getKey } from './find.ts';

interface Options {
  letFinish?: true;
  yes?: true;
  json?: true;
}

export function revokeCommand(): Command {
  return new Command('revoke')
    .description('Revoke an API key and end what it runs')
    .argument('<key>', 'Id, its first characters, or label, from `millrace keys list`')
    .option('--let-finish', 'Let requests that are in progress finish')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { letFinish, yes, json }: Options) => {
      const client = createClient('session');
      const { id, label } = await getKey(client, wanted);
      await confirm(
        `Revoke API key ${label} (${id})? ${letFinish ? 'Requests in progress finish' : 'Its requests end at once'}; batches and background responses end.`,
        yes,
      );
      const running = letFinish ? 'finish' : 'end';
      await client.delete(`/dashboard/api/api-keys/${encodeURIComponent(id)}?running=${running}`);
      report({ id, label }, `Revoked API key ${label}.`, json);
    });
}
