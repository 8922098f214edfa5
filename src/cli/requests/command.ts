// millrace requests: single requests to models, and what became of them.

import type { Command } from 'commander';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { findOnly } from '#cli/find.ts';
import { type Noun, nounCommand, viewCommand } from '#cli/noun.ts';
import { idEndLength, toFacts } from '#cli/output.ts';
import { inPages } from '#cli/pages.ts';
import { toDuration, toMoney } from '#lib/text/format.ts';
import { listCommand, requestsPath } from './list.ts';

/** How many of the newest requests are searched for the first or last characters of an id. */
const maxSearched = 2_000;

const requests: Noun<UsageRequest> = {
  noun: 'request',
  plural: 'requests',
  command: 'millrace requests list',
  needs: 'session',
  argument: ['<request>', 'Id, as in the x-request-id header, or its first characters'],
  namesOf: ({ id }) => [id.slice(-idEndLength)],
  read: inPages(requestsPath),
  find: async (client, wanted) =>
    /^[0-9a-f]{32}$/.test(wanted)
      ? client.get(`${requestsPath}/${wanted}`)
      : findOnly(await requests.read(client, maxSearched), wanted, requests),
};

export const requestsCommand = (): Command =>
  nounCommand('requests', 'List and show single requests to models', [
    listCommand(),
    viewCommand(
      requests,
      'show',
      'Show the model, backend, key, tokens, times and cost of a request',
      (request) => ({ data: request, text: describe(request) }),
    ),
  ]);

function describe(request: UsageRequest): string {
  const { status, first_token_ms: firstTokenMs, cached_tokens: cached } = request;
  return toFacts([
    ['Id', request.id],
    ['Started', request.at],
    ['Operation', request.operation],
    ['Status', status],
    ['Error code', request.code],
    ['Model', request.model],
    // Without a backend, no model has served it.
    ['Served by', request.backend === null ? null : request.served_model],
    ['Backend', request.backend],
    ['API key', request.key_label ?? request.key_id],
    ['Person', request.user_email],
    ['Input tokens', `${request.prompt_tokens}${cached === 0 ? '' : `, ${cached} of them cached`}`],
    ['Output tokens', String(request.completion_tokens)],
    ['First token', firstTokenMs === null ? null : toDuration(firstTokenMs)],
    ['Duration', status === 'running' ? null : toDuration(request.duration_ms)],
    ['Cost', `${toMoney(request.cost)}${request.reserved ? ', as reserved' : ''}`],
  ]);
}
