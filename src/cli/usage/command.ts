// millrace usage: requests, tokens and costs over time, as a table, JSON or CSV.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Command, Option } from 'commander';
import type { UsageBucket, UsageSummary } from '#accounts/usage/schema.ts';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, type Columns, toTable } from '#cli/output.ts';
import { listAll, toQuery } from '#cli/pages.ts';
import { parseTime } from '#cli/time.ts';
import { addView, type View } from '#cli/view.ts';
import type { InstanceUsage } from '#cloud/schema.ts';
import { toDuration, toHours, toMoney } from '#lib/text/format.ts';
import { describeSpend, machinesPath, readMachineTotal } from './spend.ts';

interface Options {
  by?: string;
  from?: string;
  to?: string;
  step?: string;
  csv?: true;
}

export function usageCommand(): Command {
  const command = new Command('usage')
    .description('Show requests, tokens and costs of models and machines over time')
    .addOption(
      new Option('--by <what>', 'Group by').choices(['model', 'key', 'backend', 'machine']),
    )
    .option(
      '--from <when>',
      'Start: a date such as 2026-11-01, or days ago such as 30d (default: the first of this month)',
      parseTime,
    )
    .option('--to <when>', 'End, in the same form (default: now)', parseTime)
    .addOption(
      new Option('--step <length>', 'Length of a row (default: day)').choices(['hour', 'day']),
    )
    .addOption(new Option('--csv', 'Print CSV, without machines').conflicts(['json', 'watch']));
  return addView(command, show);
}

async function show({ csv, by, step, from = monthStart(), to }: Options): Promise<View | null> {
  const client = createClient('session');
  const search = `?${toQuery({ by: by === 'machine' ? undefined : by, step, from, to })}`;
  if (csv) return print(await client.download(`/dashboard/api/usage.csv${search}`));
  const summary = await client.get<UsageSummary>(`/dashboard/api/usage${search}`);
  const machines = await readMachineTotal(client, summary);
  const models = summary.data.reduce((sum, { cost }) => sum + cost, 0);
  const total = { models, machines: machines.cents / 100 };
  const { data, table } =
    by === 'machine' ? await readMachines(client, summary) : toModelTable(summary);
  return {
    data: { ...summary, by: by ?? summary.by, data, total },
    text: `${table}\n\nTotal ${describeSpend(total)}`,
  };
}

/** As on the dashboard. Months are in UTC, as budgets are. */
function monthStart(): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).toISOString();
}

async function print({ body }: Response): Promise<null> {
  if (body === null) throw new CliError('The server sent an empty response.');
  await pipeline(Readable.fromWeb(body), process.stdout, { end: false });
  return null;
}

async function readMachines(client: Client, { from, to }: UsageSummary) {
  const data = await listAll<InstanceUsage>(client, machinesPath, { query: { from, to } });
  const table = toTable('machines', data, {
    MACHINE: ({ name, instance_id: id }) => name ?? id,
    TYPE: ({ instance_type: type }) => type,
    REGION: ({ region }) => region,
    STATUS: ({ status }) => status,
    HOURS: ({ seconds }) => toHours(seconds / 3600),
    COST: ({ cents }) => toMoney(cents / 100),
  });
  return { data, table };
}

function toModelTable({ data, step, by }: UsageSummary) {
  const isByDay = step === 'day';
  const group = ({ label, group }: UsageBucket) =>
    label ?? group ?? (by === 'key' ? 'signed in' : '-');
  const columns: Columns<UsageBucket> = {
    [isByDay ? 'DAY' : 'HOUR']: ({ start }) => start.slice(0, isByDay ? 10 : 16).replace('T', ' '),
    ...(by === 'none' ? {} : { [by.toUpperCase()]: group }),
    REQUESTS: ({ requests }) => String(requests),
    ERRORS: ({ errors }) => String(errors),
    CANCELED: ({ aborted }) => String(aborted),
    'TOKENS IN': ({ prompt_tokens }) => String(prompt_tokens),
    CACHED: ({ cached_tokens }) => String(cached_tokens),
    'TOKENS OUT': ({ completion_tokens }) => String(completion_tokens),
    FIRST: ({ first_token_ms: ms }) => (ms === null ? '-' : toDuration(ms)),
    COST: ({ cost }) => toMoney(cost),
  };
  return { data, table: toTable('requests', data, columns, ['CANCELED', 'CACHED', 'FIRST']) };
}
