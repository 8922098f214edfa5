// millrace usage: requests, tokens and costs over time, as a table, JSON or CSV.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Command, Option } from 'commander';
import type { UsageBucket, UsageSummary } from '#accounts/usage/schema.ts';
import { createClient } from '#cli/client.ts';
import { CliError, printJson, printTable } from '#cli/output.ts';
import { parseTime } from '#cli/time.ts';
import { toDuration, toMoney } from '#lib/format.ts';

interface Options {
  by?: string;
  from?: string;
  to?: string;
  step?: string;
  csv?: true;
  json?: true;
}

export function usageCommand(): Command {
  return new Command('usage')
    .description('Show requests, tokens and costs over time')
    .addOption(new Option('--by <what>', 'Group by').choices(['model', 'key', 'backend']))
    .option(
      '--from <when>',
      'Start: a date such as 2026-11-01, or days ago such as 30d (default: 7d)',
      parseTime,
    )
    .option('--to <when>', 'End, in the same form (default: now)', parseTime)
    .addOption(
      new Option('--step <length>', 'Length of a row (default: day)').choices(['hour', 'day']),
    )
    .option('--csv', 'Print CSV')
    .option('--json', 'Print JSON')
    .action(async ({ csv, json, ...query }: Options) => {
      const client = createClient('session');
      const search = `?${new URLSearchParams(query as Record<string, string>)}`;
      if (csv) return print(await client.download(`/dashboard/api/usage.csv${search}`));
      const summary = await client.get<UsageSummary>(`/dashboard/api/usage${search}`);
      if (json) return printJson(summary);
      printSummary(summary);
    });
}

async function print({ body }: Response): Promise<void> {
  if (body === null) throw new CliError('The server sent an empty response.');
  await pipeline(Readable.fromWeb(body), process.stdout, { end: false });
}

function printSummary({ data, step, by }: UsageSummary): void {
  const isGrouped = by !== 'none';
  const headers = ['REQUESTS', 'ERRORS', 'CANCELED', 'TOKENS IN', 'CACHED', 'TOKENS OUT', 'FIRST'];
  printTable(
    [step === 'day' ? 'DAY' : 'HOUR', ...(isGrouped ? [by.toUpperCase()] : []), ...headers, 'COST'],
    data.map((bucket) => [
      bucket.start.slice(0, step === 'day' ? 10 : 16).replace('T', ' '),
      ...(isGrouped ? [bucket.label ?? bucket.group ?? '-'] : []),
      ...toCells(bucket),
    ]),
  );
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
