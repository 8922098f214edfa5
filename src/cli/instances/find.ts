// Instances may be named by their id, the beginning of it, or their name, as long as that is one of them.

import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { Instance } from '#cloud/schema.ts';

export async function listInstances(client: Client): Promise<Instance[]> {
  const { data } = await client.get<{ data: Instance[] }>('/api/v1/instances');
  return data;
}

export function pickInstance(instances: readonly Instance[], wanted: string): Instance {
  const exact = instances.find(({ id }) => id === wanted);
  if (exact !== undefined) return exact;
  const matches = instances.filter(
    ({ id, name }) => name === wanted || (wanted.length >= 4 && id.startsWith(wanted)),
  );
  const [only, second] = matches;
  if (only === undefined) {
    throw new CliError(`There is no instance ${wanted}. See \`millrace instances list\`.`);
  }
  if (second !== undefined) {
    const ids = matches.map(({ id }) => id).join(', ');
    throw new CliError(`${wanted} fits several instances (${ids}). Give the id.`);
  }
  return only;
}
