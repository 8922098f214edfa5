// The files of Millrace itself, which machines that run its engine read. Not the whole folder of a clone: it may have the
// data directory.

import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface OwnProgram {
  readonly folder: string;
  /** Names in the folder. */
  readonly parts: readonly string[];
  /** The entry point, relative to the folder. */
  readonly main: string;
}

const root = fileURLToPath(new URL('../../../../..', import.meta.url));

/** npm puts the dependencies of an installed package beside it. */
export function findOwnProgram(): OwnProgram {
  const [name, parent] = [path.basename(root), path.dirname(root)];
  return path.basename(parent) === 'node_modules'
    ? {
        folder: path.dirname(parent),
        parts: ['node_modules'],
        main: `node_modules/${name}/src/main.js`,
      }
    : {
        folder: root,
        parts: ['src', 'model', 'node_modules', 'package.json', 'package-lock.json'],
        main: 'src/main.js',
      };
}
