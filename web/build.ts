// Builds the dashboard into a folder named after the version of its sources, with compressed copies of all
// assets. The server runs this in a child process; `npm run build:web` runs it by hand. Does nothing if the
// build exists.

import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { isBuilt, toBuildFolder, webFolder } from '#server/dashboard-build.ts';

const target = toBuildFolder();
const builds = dirname(target);
/** Servers of earlier versions may still serve from their folders. */
const keptBuilds = 3;

if (!isBuilt(target)) {
  const working = join(builds, `.building-${process.pid}`);
  try {
    await build({
      root: webFolder,
      logLevel: 'warn',
      build: { outDir: working, emptyOutDir: true },
    });
    await compress(join(working, 'assets'));
    await mkdir(builds, { recursive: true });
    await rename(working, target).catch(ignoreWhenBuilt);
    await prune();
  } finally {
    await rm(working, { recursive: true, force: true });
  }
}

async function compress(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const bytes = await readFile(file);
    // The highest quality, 11, takes ten times as long and saves a few percent.
    const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
    await writeFile(`${file}.br`, brotli);
    await writeFile(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** Another process may have finished the same build. Its result is equal, so ours is discarded. */
function ignoreWhenBuilt(error: NodeJS.ErrnoException): void {
  if (!isBuilt(target)) throw error;
}

async function prune(): Promise<void> {
  const names = await readdir(builds);
  const dated = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(builds, name))).mtimeMs })),
  );
  dated.sort((one, other) => other.at - one.at);
  const isWork = (name: string) => name.startsWith('.');
  const old = dated.filter(({ name }) => !isWork(name)).slice(keptBuilds);
  // Left behind by builds that were killed.
  const stale = dated.filter(({ name, at }) => isWork(name) && Date.now() - at > 600_000);
  for (const { name } of [...old, ...stale]) {
    await rm(join(builds, name), { recursive: true, force: true });
  }
}
