// millrace team remove: ends a person's sessions and, unless told otherwise, the API keys that the person created.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { getMember, membersPath } from './find.ts';

interface Options {
  keepKeys?: true;
  yes?: true;
  json?: true;
}

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a person from the account, sign them out and revoke their API keys')
    .argument('<email>', 'Email address, id or its first characters, from `millrace team list`')
    .option('--keep-keys', 'Keep the API keys that the person created')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { keepKeys, yes, json }: Options) => {
      const client = createClient('session');
      const member = await getMember(client, wanted);
      const { id, email, api_keys: count } = member;
      const keys = `${count} API ${count === 1 ? 'key' : 'keys'}`;
      const consequence = keepKeys ? `keep the ${keys}` : `revoke the ${keys}`;
      await confirm(`Remove ${email} and ${consequence} that they created?`, yes);
      const result = await client.delete<{ revoked_keys: number }>(
        `${membersPath}/${id}?keys=${keepKeys ? 'keep' : 'revoke'}`,
      );
      const text = `Removed ${email}. API keys revoked: ${result.revoked_keys}.`;
      report({ id, email, ...result }, text, json);
    });
}
