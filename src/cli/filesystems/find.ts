// Finds a filesystem by its id, the first characters of it, or its name.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { Filesystem } from '#cloud/schema.ts';

export const listFilesystems = async (client: Client) =>
  (await client.get<{ data: Filesystem[] }>('/api/v1/file-systems')).data;

export const pickFilesystem = (all: readonly Filesystem[], wanted: string): Filesystem =>
  findOnly(all, wanted, {
    noun: 'filesystem',
    command: 'millrace filesystems list',
    namesOf: ({ name }) => [name],
  });
