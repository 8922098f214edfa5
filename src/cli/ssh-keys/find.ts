// Finds an SSH key by its id, the first characters of it, or its name.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { SshKey } from '#cloud/schema.ts';

export const listSshKeys = async (client: Client) =>
  (await client.get<{ data: SshKey[] }>('/api/v1/ssh-keys')).data;

export const getSshKey = async (client: Client, wanted: string): Promise<SshKey> =>
  findOnly(await listSshKeys(client), wanted, {
    noun: 'SSH key',
    command: 'millrace ssh-keys list',
    namesOf: ({ name }) => [name],
  });
