// Which hosts an image goes to, and the request that tells one where to find it.

import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { HostImage, HostView, ImageOrigin } from '#cloud/hosts/schema.ts';

export const addHost = (name: string, before: string[] = []) => [...before, name];

/** All that take images when none is named. */
export async function chooseHosts(client: Client, names: readonly string[] = []) {
  const { data } = await client.get<{ data: HostView[] }>('/dashboard/api/hosts');
  const known = data.filter(({ driver }) => driver === 'incus').map(({ name }) => name);
  const missing = names.find((name) => !known.includes(name));
  if (missing !== undefined) {
    throw new CliError(
      `${missing} is no LXD or Incus host. There are: ${known.join(', ') || '-'}.`,
    );
  }
  if (known.length === 0) {
    throw new CliError('There is no LXD or Incus host yet: see `millrace hosts add`.');
  }
  return names.length > 0 ? names : known;
}

export const imagePath = (host: string, name: string) =>
  `/dashboard/api/images/${encodeURIComponent(host)}/${encodeURIComponent(name)}`;

export function postImage(client: Client, host: string, name: string, origin: ImageOrigin) {
  const content = JSON.stringify(origin);
  return client.postLong<HostImage>(imagePath(host, name), {
    type: 'application/json',
    bytes: Buffer.byteLength(content),
    content,
  });
}
