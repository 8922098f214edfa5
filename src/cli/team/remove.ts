// millrace team remove: ends a person's sessions and, unless told otherwise, the API keys that the
// person created. Everyone can leave the account that way.

import { Command } from 'commander';
import type { LostSsh, Removal } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { forgetSession } from '#cli/credentials.ts';
import { getItem } from '#cli/noun.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { members, membersPath } from './find.ts';

/** Which SSH keys are deleted, and which machines were launched with one. Empty if there are none. */
function describe({ ssh_keys, machines }: LostSsh): string {
  if (ssh_keys.length === 0) return '';
  const names = (all: LostSsh['machines']) => all.map(({ id, name }) => name ?? id).join(', ');
  const launched = machines.length === 0 ? 'none' : names(machines);
  return ` SSH keys that all machines refuse: ${names(ssh_keys)}. Machines launched with one: ${launched}.`;
}

interface Options {
  keepKeys?: true;
  yes?: true;
  json?: true;
}

export function removeCommand(): Command {
  return new Command('remove')
    .description(
      'Remove a person from the account, or leave it yourself; signs out, revokes API keys and ends ssh',
    )
    .argument(...members.argument)
    .option(
      '--keep-keys',
      'Keep the API keys that the person created, with your role (owners only)',
    )
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { keepKeys, yes, json }: Options) => {
      const client = createClient('session');
      const { id, email, api_keys: count } = await getItem(members, client, wanted);
      const me = await client.get<{ id: string }>('/dashboard/api/me');
      const isMe = id === me.id;
      const keys = `${count} API ${count === 1 ? 'key' : 'keys'}`;
      const consequence = `${keepKeys ? 'keep' : 'revoke'} the ${keys} that ${isMe ? 'you' : 'they'} created`;
      const question = isMe ? `Leave the account as ${email}, sign out` : `Remove ${email}`;
      const lost = await client.get<LostSsh>(`${membersPath}/${id}/ssh`);
      await confirm(`${question} and ${consequence}?${describe(lost)}`, yes);
      const result = await client.delete<Removal>(
        `${membersPath}/${id}?keys=${keepKeys ? 'keep' : 'revoke'}`,
      );
      if (isMe) forgetSession();
      const done = isMe ? 'You have left the account' : `Removed ${email}`;
      const text = `${done}. API keys revoked: ${result.revoked_keys}.${describe(result)}`;
      report({ id, email, ...result }, text, json);
    });
}
