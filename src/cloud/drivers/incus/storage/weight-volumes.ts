// Weights of deployments on the host: a volume for each set of files, filled once from this
// computer, and seen read-only by all machines that need it. A volume without the mark of a
// finished copy is copied again from the start.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { DriverError, type MachineSpec, weightsFolder } from '#cloud/drivers/driver.ts';
import type { IncusContext } from '#cloud/drivers/incus/context.ts';
import { DaemonError } from '#cloud/drivers/incus/daemon/daemon-response.ts';
import { findImage } from '#cloud/drivers/incus/images/images.ts';
import { type Device, instancePath } from '#cloud/drivers/incus/machine/instance.ts';
import { listWeightFiles, type WeightFile } from '#cloud/drivers/shared/weight-files.ts';
import { startWeightCopy, type WeightCopy } from './weight-copy.ts';

interface Volume {
  readonly name: string;
  /** The cluster member; `none` without a cluster, empty on shared storage. */
  readonly location?: string;
  readonly config: Readonly<Record<string, string>>;
  readonly used_by?: readonly string[] | null;
}

const wholeKey = 'user.millrace.whole';
const sourceKey = 'user.millrace.source';
const serverKey = 'user.millrace.server';
const prefix = 'millrace-weights-';
const mib = 2 ** 20;
/** A file system needs room beside the files. */
const spareMib = 64;
const spareShare = 1.05;
const busyDeadlineMs = 60_000;
const retryMs = 200;
const reportMs = 500;

/** Starts the copy that the machine needs. Returns what is still done; null if the host has the weights. */
export async function prepareWeights(
  context: IncusContext,
  spec: MachineSpec,
): Promise<string | null> {
  const { copy } = await findCopy(context, spec);
  if (copy === null) return null;
  const error = copy.error();
  if (error !== undefined) throw error;
  return `copying weights to ${spec.node ?? context.hostName}, ${copy.percent()} %`;
}

/** The device by which a machine sees its weights. Waits for the copy if the host does not have them yet. */
export async function provideWeights(
  context: IncusContext,
  spec: MachineSpec,
): Promise<Record<string, Device>> {
  if (!spec.weights) return {};
  const { name, copy } = await findCopy(context, spec);
  await copy?.whole;
  const { pool } = context;
  return { weights: { type: 'disk', pool, source: name, path: weightsFolder, readonly: 'true' } };
}

/** The copy is null if the host has the weights. One that failed is returned once. The next call starts another. */
async function findCopy(
  context: IncusContext,
  { weights: source, node, image }: MachineSpec,
): Promise<{ name: string; copy: WeightCopy | null }> {
  if (!source) return { name: '', copy: null };
  const { client, copies, locks } = context;
  const files = await listWeightFiles(source);
  const name = toName(context, files);
  const there = await client.find<Volume>(volumePath(context, name), { target: node });
  if (there?.config[wholeKey] === 'true') return { name, copy: null };
  const key = `${node ?? ''} ${name}`;
  const known = copies.get(key);
  if (known?.error() !== undefined) copies.delete(key);
  if (known !== undefined) return { name, copy: known };
  const filling = { name, source, files, node, image };
  const copy = startWeightCopy(toBytes(files), (progress) =>
    locks.run(name, () => fill(context, { ...filling, progress })),
  );
  copies.set(key, copy);
  copy.whole.then(
    () => copies.delete(key),
    () => {},
  );
  return { name, copy };
}

/** Removes the volumes of this server that hold none of the sources. */
export async function sweepWeights(context: IncusContext, sources: readonly string[]) {
  const { client, locks, serverId } = context;
  const volumes = await client.get<Volume[]>(volumesPath(context), { recursion: '1' });
  // Files that can't be read now may be there again later.
  const names = new Map<string, string | null>();
  for (const source of sources)
    names.set(
      source,
      await listWeightFiles(source).then(
        (files) => toName(context, files),
        () => null,
      ),
    );
  const isWanted = ({ name, config }: Volume) => {
    const current = names.get(config[sourceKey] ?? '');
    return current === null || current === name;
  };
  const unwanted = volumes.filter(
    (volume) =>
      volume.name.startsWith(prefix) &&
      volume.config[serverKey] === serverId &&
      !isWanted(volume) &&
      !locks.isHeld(volume.name) &&
      (volume.used_by ?? []).every((user) => user.includes(toFillerName(volume.name))),
  );
  for (const { name, location = 'none' } of unwanted) {
    const node = location === 'none' || location === '' ? null : location;
    await locks.run(name, () => removeVolume(context, name, node));
  }
}

interface Filling {
  readonly name: string;
  readonly source: string;
  readonly files: readonly WeightFile[];
  readonly node: string | null;
  readonly image: string;
  progress(bytes: number): void;
}

async function fill(context: IncusContext, filling: Filling): Promise<void> {
  const { client, owner, serverId } = context;
  const { name, source, files, node, progress } = filling;
  await removeVolume(context, name, node);
  const size = Math.ceil((toBytes(files) * spareShare) / mib) + spareMib;
  const config = {
    'user.millrace.owner': owner,
    [serverKey]: serverId,
    [sourceKey]: source,
    size: `${size}MiB`,
  };
  const query = { target: node };
  await client.run('POST', volumesPath(context), {
    query,
    body: { name, config, content_type: 'filesystem' },
  });
  const filler = instancePath(toFillerName(name));
  try {
    await startFiller(context, filling);
    for (const [index, file] of files.entries()) {
      const before = toBytes(files.slice(0, index));
      await push(context, filler, file, (bytes) => progress(before + bytes));
    }
    // What changed meanwhile was copied half.
    if (toName(context, await listWeightFiles(source)) !== name)
      throw new DriverError('unavailable', `${source} changed while it was copied to the host.`);
    await removeInstance(context, filler);
    const body = { config: { ...config, [wholeKey]: 'true' } };
    await client.run('PATCH', volumePath(context, name), { query, body });
  } catch (error) {
    await removeVolume(context, name, node).catch(() => {});
    throw error;
  }
}

/** The daemon writes files only through an instance: a container without a network, for as long as the copy takes. */
async function startFiller(context: IncusContext, { name, node, image }: Filling): Promise<void> {
  const { client, pool } = context;
  const wanted = await findImage(client, context.images, image);
  const { fingerprint, type } =
    wanted.type === 'container' ? wanted : await findImage(client, context.images, 'default');
  if (type !== 'container')
    throw new DriverError('impossible', 'Weights need an image of a container on the host.');
  const filler = toFillerName(name);
  const body = {
    name: filler,
    type,
    source: { type: 'image', fingerprint },
    profiles: [],
    devices: {
      root: { type: 'disk', path: '/', pool },
      weights: { type: 'disk', pool, source: name, path: weightsFolder },
    },
  };
  await client.run('POST', '/1.0/instances', { query: { target: node }, body });
  const start = { action: 'start', timeout: -1 };
  await client.run('PUT', `${instancePath(filler)}/state`, { body: start });
}

async function push(
  { client, flavor }: IncusContext,
  filler: string,
  file: WeightFile,
  progress: (bytes: number) => void,
) {
  const body = createReadStream(file.path, { highWaterMark: mib });
  const reporting = setInterval(() => progress(body.bytesRead), reportMs);
  const header = (name: string) => `${flavor.headerPrefix}-${name}`;
  await client
    .run('POST', `${filler}/files`, {
      query: { path: `${weightsFolder}/${file.name}` },
      body,
      headers: {
        [header('type')]: 'file',
        [header('mode')]: '0644',
        [header('uid')]: '0',
        [header('gid')]: '0',
      },
    })
    .finally(() => clearInterval(reporting));
}

/** Succeeds if it is gone. A volume that machines use stays. */
async function removeVolume(context: IncusContext, name: string, node: string | null = null) {
  await removeInstance(context, instancePath(toFillerName(name)));
  const query = { target: node };
  await context.client.run('DELETE', volumePath(context, name), { query }).catch(ignoreMissing);
}

/** Another process may have been killed while the daemon worked for it, so that the daemon is busy. */
async function removeInstance({ client }: IncusContext, path: string): Promise<void> {
  const deadline = performance.now() + busyDeadlineMs;
  const stop = { action: 'stop', force: true, timeout: -1 };
  for (let reason = ''; await client.find(path); await setTimeout(retryMs)) {
    if (performance.now() > deadline)
      throw new DriverError('unavailable', `The host could not remove ${path}. ${reason}`.trim());
    await client.run('PUT', `${path}/state`, { body: stop }).catch(ignoreDaemon);
    await client.run('DELETE', path).catch((error) => {
      ignoreDaemon(error);
      reason = (error as DaemonError).message;
    });
  }
}

function ignoreDaemon(error: unknown): void {
  if (!(error instanceof DaemonError)) throw error;
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof DaemonError && error.code === 404)) throw error;
}

/** Files that differ in any way are another volume, and so are those of another server with the same paths. */
function toName({ owner, serverId }: IncusContext, files: readonly WeightFile[]): string {
  const content = files.map(({ name, path, bytes, changedMs }) => [name, path, bytes, changedMs]);
  const whole = JSON.stringify([owner, serverId, content]);
  const hash = createHash('sha256').update(whole).digest('hex');
  return `${prefix}${hash.slice(0, 16)}`;
}

const toBytes = (files: readonly WeightFile[]) => files.reduce((sum, { bytes }) => sum + bytes, 0);

const toFillerName = (volume: string) => volume.replace(prefix, 'millrace-fill-');

const volumesPath = ({ pool }: IncusContext) =>
  `/1.0/storage-pools/${encodeURIComponent(pool)}/volumes/custom`;

const volumePath = (context: IncusContext, name: string) => `${volumesPath(context)}/${name}`;
