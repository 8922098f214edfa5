// Takes one file out of a pinned package of the npm registry. A download that was interrupted continues where it
// stopped, and nothing is unpacked before its checksum is right.

import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { x } from 'tar';
import { readFreeBytes } from '#lib/computer/disk-space.ts';
import { type FileSource, GrowingFile, type Progress } from '#lib/growing-file.ts';
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

const retryRules = { delayMs: 1_000, maxDelayMs: 60_000, maxFailures: 5 };
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
  { signal, progress, retryDelayMs: delayMs = retryRules.delayMs }: DownloadOptions,
): Promise<void> {
  const handle = await open(part, 'a+', 0o600);
  try {
    const file = new GrowingFile(handle, wanted.bytes, { algorithm: 'sha512', progress });
    await file.load(signal);
    try {
      await file.fetchRest(toSource(url, wanted.bytes, signal), { ...retryRules, delayMs }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof GpuError) throw error;
      throw new GpuError(
        `${url} could not be downloaded: ${toReason(error)}. Run the command again to continue.`,
      );
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

const toSource = (url: string, size: number, signal: AbortSignal): FileSource => ({
  async open(offset) {
    const headers = offset === 0 ? {} : { range: `bytes=${offset}-` };
    const response = await fetch(url, { headers, signal });
    if (response.ok && response.body !== null)
      return { from: response.status === 206 ? offset : 0, body: response.body };
    const message = `${url} answered with status ${response.status}`;
    const isFinal = response.status < 500 && response.status !== 429;
    throw isFinal ? new GpuError(`${message}.`) : new Error(message);
  },
  toTooLarge: () => new GpuError(`${url} is larger than the ${size} bytes that were published.`),
  toEndedEarly: (bytes) => new Error(`${url} ended after ${bytes} bytes`),
  retryAfterMs: (error) => (error instanceof GpuError ? null : 0),
});

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
