// The API path of a backend from its id. Model ids and names of weights may contain slashes, so the server's
// list tells where the model ends and the name begins.

import { CliError } from '#cli/output.ts';
import { nearest } from '#lib/nearest.ts';
import { readBackends } from './list.ts';

export async function toBackendPath(id: string): Promise<string> {
  const backends = await readBackends();
  const found = backends.find((backend) => backend.id === id);
  if (found === undefined) {
    const match = nearest(
      id,
      backends.map((backend) => backend.id),
    );
    const hint = match ? `Did you mean ${match}?` : 'See `millrace backends list`.';
    throw new CliError(`There is no backend ${id}. ${hint}`);
  }
  const { model, name } = found;
  return `/dashboard/api/backends/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;
}
