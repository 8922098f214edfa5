// millrace keys: the API keys of the account.

import type { Command } from 'commander';
import type { ApiKey } from '#accounts/schema.ts';
import { changeCommand, listCommand, nounCommand } from '#cli/noun.ts';
import { toMinute } from '#cli/time.ts';
import { toMoney } from '#lib/text/format.ts';
import { createCommand } from './create.ts';
import { keys, keysPath } from './find.ts';
import { limitCommand } from './limit.ts';
import { describeLimits } from './limit-options.ts';

export const keysCommand = (): Command =>
  nounCommand('keys', 'Create, list, limit and revoke API keys', [
    createCommand(),
    listCommand(keys, {
      description: 'List the API keys of the account, newest first',
      columns: {
        ID: ({ id }) => id,
        LABEL: ({ label }) => label,
        KEY: ({ hint }) => hint,
        SCOPES: ({ scopes }) => scopes.join(','),
        CREATED: ({ created_at }) => toMinute(created_at),
        'CREATED BY': toCreator,
        EXPIRES: ({ expires_at }) => toMinuteOrNever(expires_at),
        'LAST USED': ({ last_used_at }) => toMinuteOrNever(last_used_at),
        LIMITS: ({ limits }) => describeLimits(limits),
        'THIS MONTH': ({ spend }) => toMoney(spend.cost),
      },
      spare: ['KEY', 'CREATED BY', 'CREATED', 'SCOPES', 'LIMITS', 'EXPIRES'],
      limited: 'keys',
    }),
    limitCommand(),
    changeCommand(keys, 'revoke', {
      description: 'Revoke an API key and end what it runs',
      extend: (command) =>
        command.option('--let-finish', 'Let requests that are in progress finish'),
      question: ({ id, label }, { letFinish }: { letFinish?: true }) =>
        `Revoke API key ${label} (${id})? ${letFinish ? 'Requests in progress finish' : 'Its requests end at once'}; batches and background responses end.`,
      async run(client, { id, label }, { letFinish }: { letFinish?: true }) {
        const running = letFinish ? 'finish' : 'end';
        await client.delete(`${keysPath}/${encodeURIComponent(id)}?running=${running}`);
        return { data: { id, label }, text: `Revoked API key ${label}.` };
      },
    }),
  ]);

const toCreator = ({ created_by: by }: ApiKey) =>
  by === null ? 'server' : (by.email ?? 'a former member');

const toMinuteOrNever = (time: string | null) => (time === null ? 'never' : toMinute(time));
