// The address of a backend from its id. A model id or the name of weights may have slashes in it, so the
// server's list says where one ends.

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
    throw new CliError(`There is no backend ${id}.${match ? ` Did you mean ${match}?` : ''}`);
  }
  const { model, name } = found;
  return `/dashboard/api/backends/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;
}
