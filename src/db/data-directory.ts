// Creates the data directory, accessible to its owner alone, or throws an error that says why it can't.

import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartError, toReason } from '#lib/start-error.ts';

export function makeDataDirectory(path: string): void {
  try {
    makeFolder(resolve(path));
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`The data directory ${path} can't be used: ${toReason(error)}.`, error);
  }
}

/** Creates one level at a time, because Node's recursive mkdir never returns below /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) {
    if (statSync(path).isDirectory()) return;
    throw new StartError(`The data directory can't be made: ${path} is a file.`);
  }
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created the folder first.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && existsSync(path)) return;
    if (code !== 'ENOENT') throw error;
    throw new StartError(`The data directory can't be made: ${dirname(path)} takes no folders.`);
  }
}
