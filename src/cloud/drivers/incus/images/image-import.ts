// Adds images to an endpoint: an upload that is streamed through, a copy that the endpoint fetches from an image
// server itself, or the small image built from our own recipe.

import { createReadStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DriverError, type ImageSource } from '#cloud/drivers/driver.ts';
import type { DaemonClient, RequestOptions } from '#cloud/drivers/incus/daemon/client.ts';
import { type Flavor, flavorOf, type ServerInfo } from '#cloud/drivers/incus/daemon/flavor.ts';
import { architecture, buildHostImage } from './image-recipe.ts';

/** One hour, because an image can be gigabytes from a distant server. */
const waitMs = 60 * 60_000;

export async function importImage(
  client: DaemonClient,
  info: ServerInfo,
  name: string,
  source: ImageSource,
): Promise<void> {
  const fingerprint = await add(client, info, source);
  const path = `/1.0/images/aliases/${encodeURIComponent(name)}`;
  const body = { name, target: fingerprint };
  if (await client.find(path)) await client.run('PUT', path, { body });
  else await client.run('POST', '/1.0/images/aliases', { body });
}

async function add(client: DaemonClient, info: ServerInfo, source: ImageSource): Promise<string> {
  switch (source.kind) {
    case 'known': {
      const path = `/1.0/images/${encodeURIComponent(source.fingerprint)}`;
      if (await client.find(path)) return source.fingerprint;
      throw new DriverError('impossible', 'The host does not have this image yet.');
    }
    case 'remote':
      return make(client, { body: { source: toRemote(flavorOf(info), source) } });
    case 'recipe':
      return addRecipe(client, info);
    default: {
      const { body, type, bytes } = source;
      const headers: Record<string, string> = { 'content-type': type };
      if (bytes !== null) headers['content-length'] = `${bytes}`;
      return make(client, { body, headers });
    }
  }
}

async function addRecipe(client: DaemonClient, { environment }: ServerInfo): Promise<string> {
  const theirs = environment?.architectures ?? [];
  if (!theirs.includes(architecture())) {
    const message = `This server is ${architecture()}, the host ${theirs.join(', ')}: build there.`;
    throw new DriverError('impossible', message);
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-image-'));
  try {
    const file = await buildHostImage(folder);
    const { size } = await stat(file);
    return await make(client, {
      body: createReadStream(file),
      headers: { 'content-length': `${size}` },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the new image's fingerprint. */
async function make(client: DaemonClient, more: RequestOptions): Promise<string> {
  const { metadata } = await client.run('POST', '/1.0/images', { ...more, waitMs });
  const { fingerprint } = metadata ?? {};
  if (typeof fingerprint === 'string') return fingerprint;
  throw new DriverError('unavailable', 'The daemon does not say which image it made.');
}

function toRemote(flavor: Flavor, { remote, image }: ImageSource & { kind: 'remote' }) {
  const known: Record<string, string> = {
    images: flavor.imageServer,
    ubuntu: 'https://cloud-images.ubuntu.com/releases',
    'ubuntu-daily': 'https://cloud-images.ubuntu.com/daily',
  };
  const server = known[remote] ?? remote;
  if (!server.startsWith('https://')) {
    const names = Object.keys(known).join(', ');
    throw new DriverError(
      'impossible',
      `"${remote}" is none of ${names}, and no https:// address.`,
    );
  }
  return { type: 'image', mode: 'pull', protocol: 'simplestreams', server, alias: image };
}
