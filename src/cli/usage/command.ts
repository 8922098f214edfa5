// millrace usage: requests, tokens and costs over time, as a table, JSON or CSV.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Command, Option } from 'commander';
import type { UsageBucket, UsageSummary } from '#accounts/usage/schema.ts';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, toTable } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';
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
  const given = { by: by === 'machine' ? undefined : by, step, from, to };
  const query = Object.entries(given).filter(([, value]) => value !== undefined);
  const search = `?${new URLSearchParams(query as [string, string][])}`;
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
  const rows = data.map(({ name, instance_id: id, instance_type: type, ...machine }) => [
    name ?? id,
    type,
    machine.region,
    machine.status,
    toHours(machine.seconds / 3600),
    toMoney(machine.cents / 100),
  ]);
  const table = toTable('machines', ['MACHINE', 'TYPE', 'REGION', 'STATUS', 'HOURS', 'COST'], rows);
  return { data, table };
}

function toModelTable({ data, step, by }: UsageSummary) {
  const isGrouped = by !== 'none';
  const headers = ['REQUESTS', 'ERRORS', 'CANCELED', 'TOKENS IN', 'CACHED', 'TOKENS OUT', 'FIRST'];
  const table = toTable(
    'requests',
    [step === 'day' ? 'DAY' : 'HOUR', ...(isGrouped ? [by.toUpperCase()] : []), ...headers, 'COST'],
    data.map((bucket) => [
      bucket.start.slice(0, step === 'day' ? 10 : 16).replace('T', ' '),
      ...(isGrouped ? [bucket.label ?? bucket.group ?? (by === 'key' ? 'signed in' : '-')] : []),
      ...toCells(bucket),
    ]),
    ['CANCELED', 'CACHED', 'FIRST'],
  );
  return { data, table };
}

const toCells = (bucket: UsageBucket) => [
  String(bucket.requests),
  String(bucket.errors),
  String(bucket.aborted),
  String(bucket.prompt_tokens),
  String(bucket.cached_tokens),
  String(bucket.completion_tokens),
  bucket.first_token_ms === null ? '-' : toDuration(bucket.first_token_ms),
  toMoney(bucket.cost),
];
