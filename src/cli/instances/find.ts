// Finds an instance by its id, a unique prefix of it with at least four characters, or a unique name.

import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { Instance } from '#cloud/schema.ts';

const minPrefixLength = 4;

export async function listInstances(client: Client): Promise<Instance[]> {
  const { data } = await client.get<{ data: Instance[] }>('/api/v1/instances');
  return data;
}

/** Throws a CliError if no instance matches, or several do. */
export function pickInstance(instances: readonly Instance[], wanted: string): Instance {
  const exact = instances.find(({ id }) => id === wanted);
  if (exact !== undefined) return exact;
  const matches = instances.filter(
    ({ id, name }) =>
      name === wanted || (wanted.length >= minPrefixLength && id.startsWith(wanted)),
  );
  const [only, second] = matches;
  if (only === undefined) {
    throw new CliError(`There is no instance ${wanted}. See \`millrace instances list\`.`);
  }
  if (second !== undefined) {
    const ids = matches.map(({ id }) => id).join(', ');
    throw new CliError(`${wanted} matches several instances. Give the id: ${ids}.`);
  }
  return only;
}
