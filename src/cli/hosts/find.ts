// Finds a host by its name, its id, or the first characters of the id.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { HostView } from '#cloud/hosts/schema.ts';

export const hostArgument = ['<host>', 'Name or id, from `millrace hosts list`'] as const;

export const listHosts = async (client: Client) =>
  (await client.get<{ data: HostView[] }>('/dashboard/api/hosts')).data;

export const getHost = async (client: Client, wanted: string): Promise<HostView> =>
  findOnly(await listHosts(client), wanted, {
    noun: 'host',
    command: 'millrace hosts list',
    namesOf: ({ name }) => [name],
  });

export const toHostPath = ({ name }: HostView) =>
  `/dashboard/api/hosts/${encodeURIComponent(name)}`;
