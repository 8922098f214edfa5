// The weights that a machine of a deployment sees: which files of this computer they are.

import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '#cloud/drivers/driver.ts';

export interface WeightFile {
  /** Name in the folder that the machine sees. */
  readonly name: string;
  /** Where the file is on this computer, without symbolic links. */
  readonly path: string;
  readonly bytes: number;
  readonly changedMs: number;
  readonly isPublic: boolean;
}

const maxFiles = 2_000;
const splitPattern = /-\d{5}-of-(\d{5})\.gguf$/i;

/** The files of a folder, or a file with the other parts of its model. Throws DriverError if they are not here. */
export async function listWeightFiles(source: string): Promise<readonly WeightFile[]> {
  try {
    const isFolder = (await stat(source)).isDirectory();
    const folder = isFolder ? source : path.dirname(source);
    const names = isFolder ? await readdir(folder) : await findParts(source);
    if (names.length > maxFiles)
      throw new DriverError('impossible', `${source} has more than ${maxFiles} files.`);
    const found = await Promise.all(names.sort().map((name) => read(folder, name)));
    const files = found.filter((file) => file !== undefined);
    if (files.length === 0) throw new DriverError('impossible', `${source} has no files.`);
    return files;
  } catch (error) {
    if (error instanceof DriverError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new DriverError(
      'unavailable',
      `The weights can't be read at ${source} (${code}).`,
      error,
    );
  }
}

async function findParts(file: string): Promise<string[]> {
  const own = path.basename(file);
  if (!splitPattern.test(own)) return [own];
  const names = await readdir(path.dirname(file));
  const toModel = (name: string) => name.replace(splitPattern, '-of-$1.gguf');
  return names.filter((name) => splitPattern.test(name) && toModel(name) === toModel(own));
}

/** A model is a flat folder. The hub's own cache has links in place of files. */
async function read(folder: string, name: string): Promise<WeightFile | undefined> {
  const real = await realpath(path.join(folder, name));
  const found = await stat(real);
  if (!found.isFile() || /\n/.test(name + real)) return undefined;
  const isPublic = (found.mode & 0o004) !== 0;
  return { name, path: real, bytes: found.size, changedMs: Math.floor(found.mtimeMs), isPublic };
}
