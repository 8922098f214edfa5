// millrace audit: who changed what, newest first.

import { Command, InvalidArgumentError } from 'commander';
import { type AuditEvent, auditActions } from '#accounts/schema.ts';
import { keys } from '#cli/keys/find.ts';
import { members } from '#cli/team/find.ts';
import { createClient } from './client.ts';
import { getItem } from './noun.ts';
import { type Columns, toTable } from './output.ts';
import { listAll, parseLimit } from './pages.ts';
import { parseTime } from './time.ts';
import { addView } from './view.ts';

interface Options {
  action?: string;
  user?: string;
  key?: string;
  resource?: string;
  from?: string;
  to?: string;
  limit: number;
}

export function auditCommand(): Command {
  const command = new Command('audit')
    .description('List changes in the account, newest first')
    .option('--action <name>', 'Only this action, such as instance.created', parseAction)
    .option('--user <email>', 'Only changes by this person')
    .option('--key <id>', 'Only changes by this API key; id or label')
    .option('--resource <id>', 'Only changes of this resource')
    .option('--from <when>', 'Start: a date such as 2026-11-01, or days ago such as 30d', parseTime)
    .option('--to <when>', 'End, in the same form', parseTime)
    .option('--limit <n>', 'Maximum number of changes', parseLimit, 50);
  return addView(command, list);
}

function parseAction(name: string): string {
  if (auditActions.some((action) => action === name)) return name;
  throw new InvalidArgumentError(`Known actions: ${auditActions.join(', ')}.`);
}

async function list({ action, user, key, resource, from, to, limit }: Options) {
  const client = createClient('session');
  const query = {
    action,
    user_id: user && (await getItem(members, client, user)).id,
    api_key_id: key && (await getItem(keys, client, key)).id,
    resource_id: resource,
    from,
    to,
  };
  const data = await listAll<AuditEvent>(client, '/dashboard/api/audit-events', { limit, query });
  return { data, text: toTable('changes', data, columns, ['ADDRESS']) };
}

const columns: Columns<AuditEvent> = {
  TIME: ({ at }) => at.slice(0, 19).replace('T', ' '),
  ACTION: ({ action }) => action,
  BY: ({ api_key_label, user_email }) => api_key_label ?? user_email ?? '-',
  RESOURCE: ({ resource_name, resource_id }) => resource_name ?? resource_id ?? '-',
  ADDRESS: ({ address }) => address,
};
