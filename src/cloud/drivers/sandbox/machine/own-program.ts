// The files of Millrace itself, which machines that run its engine read. Not the whole folder of a
// clone: it may have the data directory.

import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { sharedNodeOptions } from '#lib/computer/compile-cache.ts';

export interface OwnProgram {
  readonly folder: string;
  /** Names in the folder. */
  readonly parts: readonly string[];
  /** The entry point, relative to the folder. */
  readonly main: string;
  /** Node's options. */
  readonly options: readonly string[];
  /** Folder of the compile cache, which machines read; null if there is none. */
  readonly compileCache: string | null;
}

const root = fileURLToPath(new URL('../../../../..', import.meta.url));

/** npm puts the dependencies of an installed package beside it. */
export function findOwnProgram(): OwnProgram {
  const [name, parent] = [path.basename(root), path.dirname(root)];
  const options = sharedNodeOptions();
  const cache = getCompileCacheDir();
  const compileCache = cache === undefined ? null : path.dirname(cache);
  return path.basename(parent) === 'node_modules'
    ? {
        options,
        compileCache,
        folder: path.dirname(parent),
        parts: ['node_modules'],
        main: `node_modules/${name}/src/main.js`,
      }
    : {
        options,
        compileCache,
        folder: root,
        parts: ['src', 'model', 'node_modules', 'package.json', 'package-lock.json'],
        main: 'src/main.js',
      };
}
