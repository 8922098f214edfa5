// Threads of this program: with neither its flags nor its secrets, and with its compiled sources, because
// stripping types anew would take each of them 17 MB and a tenth of a second.

import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';

export const startThread = (
  file: URL,
  options: Pick<WorkerOptions, 'name' | 'workerData' | 'resourceLimits'>,
): Worker => new Worker(file, { ...options, execArgv: [], env: toEnvironment() });

function toEnvironment() {
  const cache = getCompileCacheDir();
  return cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) };
}
