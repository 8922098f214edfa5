// Downloads one file from the hub: resumes where it stopped, hashes the bytes as they arrive, retries when the
// network fails, and renames the file to its final name only if its checksum is right.

import { open, rename, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkGguf, GgufError } from '#inference/gguf-check.ts';
import { GrowingFile, type Progress } from '#lib/growing-file.ts';
import { endedEarly, notSound, PullError, wrongChecksum, wrongSize } from './errors.ts';
import type { Hub } from './hub.ts';
import type { StoredFile } from './store.ts';

export interface RetryRules {
  /** Delay after the first failure. It doubles with each further one, up to `maxDelayMs`. */
  readonly delayMs: number;
  readonly maxDelayMs: number;
  /** Maximum consecutive failures. A failure after progress counts as the first. */
  readonly maxFailures: number;
}

export const defaultRetryRules: RetryRules = {
  delayMs: 1_000,
  maxDelayMs: 60_000,
  maxFailures: 8,
};

export async function download(
  hub: Hub,
  from: { repo: string; commit: string },
  file: StoredFile,
  options: { signal: AbortSignal; retry: RetryRules; progress: Progress },
): Promise<void> {
  const handle = await open(file.part, 'a+', 0o600);
  const growing = new GrowingFile(handle, file.size, {
    algorithm: 'sha256',
    progress: options.progress,
  });
  try {
    const kept = await growing.load(options.signal);
    await fetchRest(hub, { ...from, path: file.path }, growing, options);
    if (growing.digest('hex') !== file.sha256) {
      // After a machine crash, a part may differ from what was written. Download once more from the start.
      if (kept === 0) throw wrongChecksum(file.path);
      await growing.reset();
      await fetchRest(hub, { ...from, path: file.path }, growing, options);
      if (growing.digest('hex') !== file.sha256) throw wrongChecksum(file.path);
    }
    await checkContent(file);
    await handle.sync();
  } catch (error) {
    if (error instanceof PullError && error.code === 'corrupt')
      await rm(file.part, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await rename(file.part, file.target);
}

async function checkContent({ path, part }: StoredFile): Promise<void> {
  try {
    await checkGguf(part);
  } catch (error) {
    throw error instanceof GgufError ? notSound(path, error.message) : error;
  }
}

async function fetchRest(
  hub: Hub,
  source: { repo: string; commit: string; path: string },
  growing: GrowingFile,
  { signal, retry }: { signal: AbortSignal; retry: RetryRules },
): Promise<void> {
  let failures = 0;
  while (growing.bytes < growing.size) {
    const before = growing.bytes;
    try {
      await fetchOnce(hub, source, growing, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof PullError) || error.code !== 'unavailable') throw error;
      failures = growing.bytes > before ? 1 : failures + 1;
      if (failures >= retry.maxFailures) throw error;
      const delayMs = Math.max(retry.delayMs * 2 ** (failures - 1), error.retryAfterMs);
      await sleep(Math.min(delayMs, retry.maxDelayMs), undefined, { signal });
    }
  }
}

async function fetchOnce(
  hub: Hub,
  source: { repo: string; commit: string; path: string },
  growing: GrowingFile,
  signal: AbortSignal,
): Promise<void> {
  const { from, body } = await hub.open(source, growing.bytes, signal);
  if (from !== growing.bytes) await growing.reset();
  for await (const chunk of body) {
    if (growing.bytes + chunk.length > growing.size) throw wrongSize(source.path, growing.size);
    await growing.append(chunk);
  }
  if (growing.bytes < growing.size) throw endedEarly(source.path);
}
