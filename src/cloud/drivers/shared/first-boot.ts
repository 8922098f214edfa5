// Reads user data within bounds of time and memory. A mebibyte of hostile YAML takes the parser many seconds and
// hundreds of megabytes, so all but short data is read in a thread, which is ended at its bounds.

import { Worker } from 'node:worker_threads';
import { compileCacheEnvironment } from '#lib/computer/compile-cache.ts';
import { toFirstBoot, toSkipped } from './user-data.ts';

/** Shorter data takes a few milliseconds, whatever it is. */
const shortLength = 2048;
const maxReadMs = 10_000;
const resourceLimits = { maxOldGenerationSizeMb: 512 };

/** Like `toFirstBoot`. Data that exceeds the bounds is skipped, with a line in the boot log. */
export async function readFirstBoot(userData: string): Promise<string> {
  if (userData.length <= shortLength) return toFirstBoot(userData);
  const { promise, resolve } = Promise.withResolvers<string>();
  const thread = new Worker(new URL('./first-boot-worker.ts', import.meta.url), {
    execArgv: [],
    env: compileCacheEnvironment(),
    resourceLimits,
    workerData: userData,
  });
  const skip = () => resolve(toSkipped('user data was skipped: it takes too long to read'));
  const timer = setTimeout(skip, maxReadMs);
  thread.on('message', resolve).on('error', skip).on('exit', skip);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}
