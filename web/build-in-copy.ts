// Builds the pages in a copy of the sources with all dependencies, and removes it. `npm ci --omit=dev` leaves out what
// builds them, because an installation that keeps it is three times as large.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isBuilt, webFolder } from '#server/dashboard-build.ts';

const root = dirname(webFolder);

export const hasBuildTools = () => existsSync(join(root, 'node_modules/vite'));

export async function buildInCopy(copy: string, builds: string): Promise<void> {
  const sources = (await readdir(webFolder)).filter((name) => name !== 'dist');
  for (const path of [
    ...['.npmrc', 'docs', 'package-lock.json', 'package.json', 'src', 'tsconfig.json'],
    ...sources.map((name) => join('web', name)),
  ]) {
    await cp(join(root, path), join(copy, path), { recursive: true });
  }
  await run(copy, 'npm', ['ci', '--include=dev']);
  await run(copy, process.execPath, ['web/build.ts']);
  const built = join(copy, 'web/dist');
  const folders = (await readdir(built, { withFileTypes: true })).filter((one) =>
    one.isDirectory(),
  );
  for (const { name } of folders) {
    await rename(join(built, name), join(builds, name)).catch((error: NodeJS.ErrnoException) => {
      // Another process may have finished the same build.
      if (!isBuilt(join(builds, name))) throw error;
    });
  }
}

/** Ends the program with this process, which the server ends when it stops. */
async function run(cwd: string, program: string, args: string[]): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  process.once('SIGTERM', end);
  try {
    await promisify(execFile)(program, args, { cwd, signal: ended.signal });
  } finally {
    process.off('SIGTERM', end);
  }
}
