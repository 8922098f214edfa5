// The options that set limits, shared by the commands for keys and for the account.

import { type Command, InvalidArgumentError } from 'commander';
import type { Limits } from '#accounts/schema.ts';
import { CliError } from '#cli/output.ts';
import { toMoney } from '#lib/text/format.ts';

/** `none` instead of null: commander takes null as an option that was not given. */
type Given = number | 'none';

export interface LimitOptions {
  requestsPerMinute?: Given;
  tokensPerMinute?: Given;
  concurrent?: Given;
  budget?: Given;
}

export function addLimitOptions(command: Command): Command {
  return command
    .option('--requests-per-minute <n>', 'Maximum requests per minute, or none', parseCount)
    .option(
      '--tokens-per-minute <n>',
      'Maximum tokens per minute, prompt and completion together, or none',
      parseCount,
    )
    .option('--concurrent <n>', 'Maximum concurrent requests, or none', parseCount)
    .option(
      '--budget <usd>',
      'Maximum spend in US dollars per calendar month (UTC), or none',
      parseMoney,
    );
}

/** Contains only the limits that were given. */
export function toLimits(options: LimitOptions): Limits {
  const name = (member: keyof Limits, given: Given | undefined): Limits =>
    given === undefined ? {} : { [member]: given === 'none' ? null : given };
  return {
    ...name('requests_per_minute', options.requestsPerMinute),
    ...name('tokens_per_minute', options.tokensPerMinute),
    ...name('concurrent_requests', options.concurrent),
    ...name('monthly_budget', options.budget),
  };
}

/** The limits to change. Throws if none was given. */
export function toChangedLimits(options: LimitOptions): Limits {
  const limits = toLimits(options);
  if (Object.keys(limits).length > 0) return limits;
  throw new CliError(
    'Give at least one limit, such as --requests-per-minute 60 or --budget none.',
    2,
  );
}

/** A short text such as `60 rpm, 10000 tpm, 4 at once, $5 a month`. */
export function describeLimits(limits: Limits): string {
  const { requests_per_minute, tokens_per_minute, concurrent_requests, monthly_budget } = limits;
  const parts = [
    requests_per_minute == null ? '' : `${requests_per_minute} rpm`,
    tokens_per_minute == null ? '' : `${tokens_per_minute} tpm`,
    concurrent_requests == null ? '' : `${concurrent_requests} at once`,
    monthly_budget == null ? '' : `${toMoney(monthly_budget)} a month`,
  ];
  return parts.filter((part) => part !== '').join(', ') || 'none';
}

function parseCount(text: string): Given {
  if (text === 'none') return text;
  if (!/^[1-9]\d{0,9}$/.test(text)) {
    throw new InvalidArgumentError('Give an integer of at least 1, or none.');
  }
  return Number(text);
}

function parseMoney(text: string): Given {
  if (text === 'none') return text;
  const dollars = /^\$?(\d{1,7}(\.\d{1,9})?)$/.exec(text)?.[1];
  if (dollars === undefined || Number(dollars) === 0) {
    throw new InvalidArgumentError('Give an amount in US dollars such as 25 or 0.50, or none.');
  }
  return Number(dollars);
}
