// Finds an instance by its id, a unique prefix of it with at least four characters, or a unique name.

import type { Client } from '#cli/client.ts';
import { pickOnly } from '#cli/output.ts';
import type { Instance } from '#cloud/schema.ts';

const minPrefixLength = 4;

export async function listInstances(client: Client): Promise<Instance[]> {
  const { data } = await client.get<{ data: Instance[] }>('/api/v1/instances');
  return data;
}

export function pickInstance(instances: readonly Instance[], wanted: string): Instance {
  const exact = instances.find(({ id }) => id === wanted);
  if (exact !== undefined) return exact;
  const matches = instances.filter(
    ({ id, name }) =>
      name === wanted || (wanted.length >= minPrefixLength && id.startsWith(wanted)),
  );
  return pickOnly(matches, { noun: 'instance', wanted, command: 'millrace instances list' });
}
