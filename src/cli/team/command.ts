// millrace team: the people in the account, and help for those who can't sign in.

import { Argument, type Command } from 'commander';
import { type Role, roles } from '#accounts/schema.ts';
import { changeCommand, listCommand, nounCommand } from '#cli/noun.ts';
import { members, membersPath } from './find.ts';
import { inviteCommand } from './invite.ts';
import { removeCommand } from './remove.ts';
import { resetCommand } from './reset.ts';

export const teamCommand = (): Command =>
  nounCommand('team', 'List, invite and remove people, change their roles, and reset passwords', [
    listCommand(members, {
      description: 'List the people in the account, newest first',
      columns: {
        ID: ({ id }) => id,
        EMAIL: ({ email }) => email,
        ROLE: ({ role }) => role,
        JOINED: ({ joined_at }) => joined_at.slice(0, 10),
        'API KEYS': ({ api_keys }) => String(api_keys),
      },
      limited: 'people',
    }),
    inviteCommand(),
    changeCommand(members, 'role', {
      description: 'Change the role of a person',
      extend: (command) => command.addArgument(new Argument('<role>', 'New role').choices(roles)),
      async run(client, { id, email }, role: Role) {
        const { api_keys } = await client.patch<Changed>(`${membersPath}/${id}`, { role });
        const text = [`${email} is now ${role}.`, ...describeKeys(role, api_keys)].join('\n');
        return { data: { id, email, role, api_keys }, text };
      },
    }),
    removeCommand(),
    resetCommand(),
  ]).alias('users');

interface Changed {
  /** Keys of the person that the change of the role affects. */
  api_keys: { id: string; label: string }[];
}

const describeKeys = (role: Role, keys: Changed['api_keys']): string[] =>
  keys.length === 0
    ? []
    : [
        `API keys that ${role === 'viewer' ? 'can only read now' : 'can be used again'}:`,
        ...keys.map(({ id, label }) => `  ${label} (${id})`),
      ];
