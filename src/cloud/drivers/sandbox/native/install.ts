// Puts an executable into the data directory. It is replaced as a whole, because machines may be starting with
// the one of an earlier server.

import { randomBytes } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

export async function installProgram(file: string, executable: Buffer) {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomBytes(4).toString('hex')}`;
  await writeFile(temporary, executable, { mode: 0o700 });
  await rename(temporary, file);
}
