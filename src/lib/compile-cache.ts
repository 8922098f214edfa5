// The cache of compiled sources that all processes and threads of Millrace share. Stripping types again would cost each of
// them 17 MB and 0.1 s.

import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/** Environment of a thread or child process that uses the cache of this process. */
export function compileCacheEnvironment(): Record<string, string> {
  const cache = getCompileCacheDir();
  return cache === undefined
    ? {}
    : { NODE_COMPILE_CACHE: dirname(cache), NODE_COMPILE_CACHE_PORTABLE: '1' };
}

const tuning = /^--(max-semi-space-size=\d+|memory-reducer-delay-ms=\d+|no-maglev)$/;

/** Node's options for another Millrace. V8 keys its cache by them, so that one with others would compile everything again. */
export const sharedNodeOptions = (): string[] =>
  process.execArgv.filter((option) => tuning.test(option));
