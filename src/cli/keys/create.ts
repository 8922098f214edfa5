// millrace keys create: prints the key once, alone on stdout so that scripts can capture it.

import { Command, InvalidArgumentError, Option } from 'commander';
import { type ApiKey, scopes } from '#accounts/schema.ts';
import { createClient } from '#cli/client.ts';
import { printJson } from '#cli/output.ts';
import { keysPath } from './find.ts';
import { addLimitOptions, type LimitOptions, toLimits } from './limit-options.ts';

interface Options extends LimitOptions {
  scope?: string[];
  expires?: string;
  json?: true;
}

export function createCommand(): Command {
  const command = new Command('create')
    .description('Create an API key; it is shown only once')
    .argument('<label>', 'Label that says what the key is for')
    .addOption(
      new Option('--scope <scope...>', 'APIs that it may use (default: both)').choices(scopes),
    )
    .option(
      '--expires <when>',
      'Expiry: a date such as 2027-01-31, or days from now such as 90d (default: never)',
      parseExpiry,
    );
  return addLimitOptions(command)
    .option('--json', 'Print JSON')
    .action(async (label: string, { scope, expires, json, ...options }: Options) => {
      const made = await createClient('session').post<ApiKey>(keysPath, {
        label,
        scopes: scope ?? null,
        expires_at: expires ?? null,
        limits: toLimits(options),
      });
      if (json) return printJson(made);
      console.error('Save this key now. It is not shown again.');
      console.log(made.key);
    });
}

function parseExpiry(text: string): string {
  const days = /^(\d{1,4})d$/.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : Date.now() + Number(days) * 86_400_000;
  if (Number.isNaN(at))
    throw new InvalidArgumentError('Give a date such as 2027-01-31, or days from now such as 90d.');
  if (at <= Date.now()) throw new InvalidArgumentError('Give a time in the future, such as 90d.');
  return new Date(at).toISOString();
}
