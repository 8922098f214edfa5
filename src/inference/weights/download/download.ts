// Downloads one file from the hub: resumes where it stopped, hashes the bytes as they arrive, retries when the
// network fails, and renames the file to its final name only if its checksum is right.

import { open, rename, rm } from 'node:fs/promises';
import { checkGguf, GgufError } from '#inference/gguf-check.ts';
import {
  endedEarly,
  notSound,
  PullError,
  wrongChecksum,
  wrongSize,
} from '#inference/weights/errors.ts';
import type { Hub, HubCall } from '#inference/weights/hub.ts';
import type { StoredFile } from '#inference/weights/store.ts';
import { type FileSource, GrowingFile, type Progress, type RetryRules } from '#lib/growing-file.ts';

export const defaultRetryRules: RetryRules = {
  delayMs: 1_000,
  maxDelayMs: 60_000,
  maxFailures: 8,
};

export async function download(
  hub: Hub,
  from: { repo: string; commit: string },
  file: StoredFile,
  { retry, progress, ...call }: HubCall & { retry: RetryRules; progress: Progress },
): Promise<void> {
  const { signal } = call;
  const source = toSource(hub, { ...from, path: file.path, size: file.size }, call);
  const handle = await open(file.part, 'a+', 0o600);
  const growing = new GrowingFile(handle, file.size, { ...toHashing(file), progress });
  const isRight = () => growing.digest('hex') === (file.sha256 ?? file.gitId);
  try {
    const kept = await growing.load(signal);
    await growing.fetchRest(source, retry, signal);
    if (!isRight()) {
      // After a machine crash, a part may differ from what was written. Download once more from the start.
      if (kept === 0) throw wrongChecksum(file.path);
      await growing.reset();
      await growing.fetchRest(source, retry, signal);
      if (!isRight()) throw wrongChecksum(file.path);
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

/** Git hashes a file after a header. */
const toHashing = ({ sha256, size }: StoredFile) =>
  sha256 === null
    ? ({ algorithm: 'sha1', prefix: `blob ${size}\0` } as const)
    : ({ algorithm: 'sha256' } as const);

async function checkContent({ path, part }: StoredFile): Promise<void> {
  if (!path.toLowerCase().endsWith('.gguf')) return;
  try {
    await checkGguf(part);
  } catch (error) {
    throw error instanceof GgufError ? notSound(path, error.message) : error;
  }
}

const toSource = (
  hub: Hub,
  file: { repo: string; commit: string; path: string; size: number },
  call: HubCall,
): FileSource => ({
  open: (offset) => hub.open(file, offset, call),
  toTooLarge: () => wrongSize(file.path, file.size),
  toEndedEarly: () => endedEarly(file.path),
  retryAfterMs: (error) =>
    error instanceof PullError && error.code === 'unavailable' ? error.retryAfterMs : null,
});
