// millrace keys revoke.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { getKey } from './find.ts';

export function revokeCommand(): Command {
  return new Command('revoke')
    .description('Revoke an API key: new requests are refused, requests in progress finish')
    .argument('<key>', 'Id, its first characters, or label, from `millrace keys list`')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('session');
      const { id, label } = await getKey(client, wanted);
      await confirm(
        `Revoke API key ${label} (${id})? New requests with it will be refused, and its batches cancelled.`,
        yes,
      );
      await client.delete(`/dashboard/api/api-keys/${encodeURIComponent(id)}`);
      report({ id, label }, `Revoked API key ${label}.`, json);
    });
}
