// Finds an API key by its id, the first characters of it, or its label.

import type { ApiKey } from '#accounts/schema.ts';
import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import { listAll } from '#cli/pages.ts';

export const keysPath = '/dashboard/api/api-keys';

export const getKey = async (client: Client, wanted: string): Promise<ApiKey> =>
  findOnly(await listAll<ApiKey>(client, keysPath, { query: { search: wanted } }), wanted, {
    noun: 'API key',
    command: 'millrace keys list',
    namesOf: ({ label }) => [label],
  });
