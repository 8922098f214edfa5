// Finds a request by its id, or by the first or last characters of it among the newest requests.

import type { UsageRequest } from '#accounts/usage/schema.ts';
import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import { idEndLength } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';

export const requestsPath = '/dashboard/api/usage/requests';

/** How many of the newest requests are searched for a part of an id. */
const maxSearched = 2_000;

export async function getRequest(client: Client, wanted: string): Promise<UsageRequest> {
  if (/^[0-9a-f]{32}$/.test(wanted)) return client.get(`${requestsPath}/${wanted}`);
  const newest = await listAll<UsageRequest>(client, requestsPath, { limit: maxSearched });
  return findOnly(newest, wanted, {
    noun: 'request',
    command: 'millrace requests list',
    namesOf: ({ id }) => [id.slice(-idEndLength)],
  });
}
