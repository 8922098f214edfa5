// millrace requests show.

import { Command } from 'commander';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { createClient } from '#cli/client.ts';
import { addView } from '#cli/view.ts';
import { toDuration, toMoney } from '#lib/text/format.ts';
import { toPrintable } from '#lib/text/printable.ts';
import { getRequest } from './find.ts';

export function showCommand(): Command {
  const command = new Command('show')
    .description('Show the model, backend, key, tokens, times and cost of a request')
    .argument('<request>', 'Id, as in the x-request-id header, or its first characters');
  return addView(command, async (wanted: string) => {
    const request = await getRequest(createClient('session'), wanted);
    const text = toRows(request)
      .map(([name, value]) => `${name.padEnd(16)} ${toPrintable(value || '-')}`)
      .join('\n');
    return { data: request, text };
  });
}

function toRows(request: UsageRequest): [string, string][] {
  const { status, first_token_ms: firstTokenMs, cached_tokens: cached } = request;
  return [
    ['Id', request.id],
    ['Started', request.at],
    ['Operation', request.operation],
    ['Status', status],
    ['Error code', request.code ?? ''],
    ['Model', request.model],
    // Without a backend, no model has served it.
    ['Served by', request.backend === null ? '' : request.served_model],
    ['Backend', request.backend ?? ''],
    ['API key', request.key_label ?? request.key_id ?? ''],
    ['Person', request.user_email ?? ''],
    ['Input tokens', `${request.prompt_tokens}${cached === 0 ? '' : `, ${cached} of them cached`}`],
    ['Output tokens', String(request.completion_tokens)],
    ['First token', firstTokenMs === null ? '' : toDuration(firstTokenMs)],
    ['Duration', status === 'running' ? '' : toDuration(request.duration_ms)],
    ['Cost', `${toMoney(request.cost)}${request.reserved ? ', as reserved' : ''}`],
  ];
}
