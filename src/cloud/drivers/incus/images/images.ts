// Images that an endpoint can boot, by alias, and the aliases that image names in launches stand for.

import { DriverError, type ImageReport } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import type { DaemonInstance } from '#cloud/drivers/incus/machine/instance.ts';

export interface ImageNames {
  /** Alias for launches that do not name an image of the endpoint. */
  readonly fallback: string;
  /** Other names for aliases, e.g. `ubuntu-24-04`. */
  readonly names: Readonly<Record<string, string>>;
}

export interface DaemonImage {
  readonly fingerprint: string;
  readonly type: DaemonInstance['type'];
  readonly architecture: string;
  readonly aliases?: readonly { readonly name: string }[] | null;
  readonly properties?: Readonly<Record<string, string>> | null;
}

/** Names that mean "no particular image": on a driver without images they stand for the host itself. */
const unspecified = new Set(['default', 'host']);

export async function findImage(
  client: DaemonClient,
  images: ImageNames,
  name: string,
): Promise<DaemonImage> {
  const alias = images.names[name] ?? (unspecified.has(name) ? images.fallback : name);
  const known = await client.find<{ target: string }>(
    `/1.0/images/aliases/${encodeURIComponent(alias)}`,
  );
  const image = known && (await client.find<DaemonImage>(`/1.0/images/${known.target}`));
  if (!image) throw new DriverError('impossible', `The host has no image "${alias}".`);
  return image;
}

export async function listImages(client: DaemonClient): Promise<ImageReport[]> {
  const images = await client.get<DaemonImage[]>('/1.0/images', { recursion: '1' });
  return images.flatMap((image) =>
    (image.aliases ?? []).map(({ name }) => ({
      name,
      description: image.properties?.description ?? name,
      architecture: image.architecture === 'aarch64' ? 'arm64' : 'x86_64',
    })),
  );
}
