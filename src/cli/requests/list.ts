// millrace requests list.

import { Command, Option } from 'commander';
import { type UsageRequest, usageStatuses } from '#accounts/usage/schema.ts';
import { createClient } from '#cli/client.ts';
import { getKey } from '#cli/keys/find.ts';
import { toTable } from '#cli/output.ts';
import { listAll, parseLimit } from '#cli/pages.ts';
import { parseTime } from '#cli/time.ts';
import { addView } from '#cli/view.ts';
import { toDuration, toMoney } from '#lib/text/format.ts';
import { requestsPath } from './find.ts';

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
  const filter = { model, status, from, key: key && (await getKey(client, key)).id };
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const query = Object.fromEntries(given) as Record<string, string>;
  const data = await listAll<UsageRequest>(client, requestsPath, { limit, query });
  const headers = [
    'ID',
    'TIME',
    'MODEL',
    'SENT BY',
    'STATUS',
    'TOKENS IN',
    'TOKENS OUT',
    'TOOK',
    'COST',
  ];
  const rows = data.map((request) => [
    request.id,
    request.at.slice(5, 19).replace('T', ' '),
    request.model || '-',
    request.key_label ?? request.key_id ?? request.user_email ?? '-',
    request.code ?? request.status,
    String(request.prompt_tokens),
    String(request.completion_tokens),
    request.status === 'running' ? '-' : toDuration(request.duration_ms),
    toMoney(request.cost),
  ]);
  return { data, text: toTable('requests', headers, rows, ['SENT BY', 'TOKENS IN', 'TOKENS OUT']) };
}
