// The cache of compiled sources that all processes and threads of Millrace share. Stripping types
// again would cost each of them 17 MB and 0.1 s.

import { accessSync, chmodSync, constants, readdirSync, statSync } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';

/** Environment of a thread or child process that uses the cache of this process. */
export function compileCacheEnvironment(): Record<string, string> {
  const cache = getCompileCacheDir();
  return cache === undefined
    ? {}
    : { NODE_COMPILE_CACHE: dirname(cache), NODE_COMPILE_CACHE_PORTABLE: '1' };
}

/**
 * Writes what this process has compiled, and lets machines read it, also those that run already:
 * Node makes the files readable for its own user alone. A machine that can't read them compiles at
 * every start of its engine: the modules of the model's process then take 390 instead of 110 ms of
 * CPU (bench/RESULTS.md, "Deployments").
 */
export function shareCompileCache(): void {
  flushCompileCache();
  const cache = getCompileCacheDir();
  if (cache === undefined) return;
  try {
    accessSync(cache, constants.W_OK);
    for (const name of readdirSync(cache)) {
      const file = join(cache, name);
      // Undefined for a temporary file of another process, which has renamed it meanwhile.
      const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? readable;
      if ((mode & readable) !== readable) chmodSync(file, mode | readable);
    }
  } catch {
    // The cache belongs to another user, as inside a machine. What is not readable yet, the next start makes readable.
  }
}

const readable = 0o044;
const tuning =
  /^--(max-semi-space-size=\d+|(gc-memory-reducer-start|memory-reducer)-delay-ms=\d+|no-maglev)$/;

/**
 * Node's options for another Millrace. V8 keys its cache by them, so that one with others would
 * compile everything again.
 */
export const sharedNodeOptions = (): string[] =>
  process.execArgv.filter((option) => tuning.test(option));
