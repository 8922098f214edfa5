// API keys as commands list and find them.

import type { ApiKey } from '#accounts/schema.ts';
import { findOnly } from '#cli/find.ts';
import type { Noun } from '#cli/noun.ts';
import { inPages, listAll } from '#cli/pages.ts';

export const keysPath = '/dashboard/api/api-keys';

export const keys: Noun<ApiKey> = {
  noun: 'API key',
  plural: 'API keys',
  command: 'millrace keys list',
  needs: 'session',
  argument: ['<key>', 'Id, its first characters, or label, from `millrace keys list`'],
  namesOf: ({ label }) => [label],
  read: inPages(keysPath),
  async find(client, wanted) {
    const found = await listAll<ApiKey>(client, keysPath, { query: { search: wanted } });
    return findOnly(found, wanted, keys);
  },
};
