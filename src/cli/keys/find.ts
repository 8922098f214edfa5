// Finds an API key by its id or label.

import type { ApiKey } from '#accounts/schema.ts';
import type { Client } from '#cli/client.ts';
import { pickOnly } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';

export async function getKey(client: Client, wanted: string): Promise<ApiKey> {
  const path = '/dashboard/api/api-keys';
  const data = await listAll<ApiKey>(client, path, { query: { search: wanted } });
  const matches = data.filter(({ id, label }) => id === wanted || label === wanted);
  return pickOnly(matches, { noun: 'API key', wanted, command: 'millrace keys list' });
}
