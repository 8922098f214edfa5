// Finds an API key by its id or label.

import type { ApiKey } from '#accounts/schema.ts';
import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';

/** Throws a CliError if no key matches, or several do. */
export async function getKey(client: Client, wanted: string): Promise<ApiKey> {
  const path = '/dashboard/api/api-keys';
  const data = await listAll<ApiKey>(client, path, { query: { search: wanted } });
  const matches = data.filter(({ id, label }) => id === wanted || label === wanted);
  const [only, second] = matches;
  if (only === undefined) {
    throw new CliError(`No API key has the id or label ${wanted}. See \`millrace keys list\`.`);
  }
  if (second !== undefined) {
    const ids = matches.map(({ id }) => id).join(', ');
    throw new CliError(`Several API keys have the label ${wanted}. Give the id: ${ids}.`);
  }
  return only;
}
