// Chooses the hosts that an image is sent to, and sends the request that imports it.

import type { Client } from '#cli/client.ts';
import { hosts } from '#cli/hosts/find.ts';
import { CliError } from '#cli/output.ts';
import type { HostImage, ImageOrigin } from '#cloud/hosts/schema.ts';

/** Collects a repeated --host option. */
export const addHost = (name: string, before: string[] = []) => [...before, name];

/** Returns the named hosts, or every LXD and Incus host if none is named. */
export async function chooseHosts(client: Client, names: readonly string[] = []) {
  const all = await hosts.read(client);
  const known = all.filter(({ driver }) => driver === 'incus').map(({ name }) => name);
  const missing = names.find((name) => !known.includes(name));
  if (missing !== undefined) {
    throw new CliError(
      `${missing} is not an LXD or Incus host. Known hosts: ${known.join(', ') || 'none'}.`,
    );
  }
  if (known.length === 0) {
    throw new CliError('There is no LXD or Incus host. Add one with `millrace hosts add`.');
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
