// millrace requests list.

import { Command, Option } from 'commander';
import { type UsageRequest, usageStatuses } from '#accounts/usage/schema.ts';
import { createClient } from '#cli/client.ts';
import { keys } from '#cli/keys/find.ts';
import { getItem } from '#cli/noun.ts';
import { type Columns, toTable } from '#cli/output.ts';
import { listAll, parseLimit } from '#cli/pages.ts';
import { parseTime } from '#cli/time.ts';
import { addView } from '#cli/view.ts';
import { toDuration, toMoney } from '#lib/text/format.ts';

export const requestsPath = '/dashboard/api/usage/requests';

interface Options {
  model?: string;
  key?: string;
  status?: string;
  from?: string;
  limit: number;
}

export function listCommand(): Command {
  const command = new Command('list')
    .description('List requests, newest first')
    .option('--model <id>', 'Only requests to this model')
    .option('--key <id>', 'Only requests with this API key; id or label')
    .addOption(new Option('--status <status>', 'Only this outcome').choices([...usageStatuses]))
    .option('--from <when>', 'Start: a date such as 2026-11-01, or days ago such as 30d', parseTime)
    .option('--limit <n>', 'Maximum number of requests', parseLimit, 50);
  return addView(command, list);
}

async function list({ key, limit, model, status, from }: Options) {
  const client = createClient('session');
  const query = { model, status, from, key: key && (await getItem(keys, client, key)).id };
  const data = await listAll<UsageRequest>(client, requestsPath, { limit, query });
  return { data, text: toTable('requests', data, columns, spare) };
}

const columns: Columns<UsageRequest> = {
  ID: ({ id }) => id,
  TIME: ({ at }) => at.slice(5, 19).replace('T', ' '),
  MODEL: ({ model }) => model || '-',
  'SENT BY': ({ key_label, key_id, user_email }) => key_label ?? key_id ?? user_email ?? '-',
  STATUS: ({ code, status }) => code ?? status,
  'TOKENS IN': ({ prompt_tokens }) => String(prompt_tokens),
  'TOKENS OUT': ({ completion_tokens }) => String(completion_tokens),
  TOOK: ({ status, duration_ms }) => (status === 'running' ? '-' : toDuration(duration_ms)),
  COST: ({ cost }) => toMoney(cost),
};

const spare = ['SENT BY', 'TOKENS IN', 'TOKENS OUT'];
