// Finds an instance by its id, the first characters of it, or its name.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { Instance } from '#cloud/schema.ts';

export async function listInstances(client: Client): Promise<Instance[]> {
  const { data } = await client.get<{ data: Instance[] }>('/api/v1/instances');
  return data;
}

export const pickInstance = (instances: readonly Instance[], wanted: string): Instance =>
  findOnly(instances, wanted, {
    noun: 'instance',
    command: 'millrace instances list',
    namesOf: ({ name }) => [name],
  });
