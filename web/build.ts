// Builds the dashboard, then the guide, each into a folder named after the version of its sources, with compressed
// copies of all assets. The server runs this in a child process; `npm run build:web` runs it by hand. Does nothing
// for a build that exists, and waits for a process that builds already. A production checkout lacks the build tools, so it
// builds in a copy that has them.

import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { lockFile } from '#lib/computer/file-lock.ts';
import { isBuilt, toBuildFolder, toHelpFolder, webFolder } from '#server/dashboard-build.ts';
import { buildInCopy, hasBuildTools } from './build-in-copy.ts';

const dashboard = toBuildFolder();
const help = toHelpFolder();
const builds = dirname(dashboard);
/** Servers of earlier versions may still serve from their folders. */
const keptBuilds = 3;

/** Named after the process, because one that was killed leaves its own behind. */
const working = join(builds, `.building-${process.pid}`);

const lockName = 'lock';
/** A build takes half a minute on one slow core. One in a copy installs its dependencies first. */
const maxBuildMs = 600_000;

if (!isBuilt(dashboard) || !isBuilt(help)) await buildAlone();

/** Servers that start together each run this program, and each build takes ten seconds of CPU time: one of them builds. */
async function buildAlone(): Promise<void> {
  await mkdir(builds, { recursive: true });
  const lock = lockFile(join(builds, lockName), maxBuildMs);
  if (lock === null)
    throw new Error(
      `Another process has been building in ${builds} for ${maxBuildMs / 1000} seconds.`,
    );
  try {
    if (isBuilt(dashboard) && isBuilt(help)) return;
    if (hasBuildTools()) await buildHere();
    else await buildInCopy(working, builds);
    await prune();
  } finally {
    await rm(working, { recursive: true, force: true });
    lock.release();
  }
}

async function buildHere(): Promise<void> {
  await buildOnce(dashboard, async (outDir) => {
    const vite = await import('vite');
    await vite.build({ root: webFolder, logLevel: 'warn', build: { outDir, emptyOutDir: true } });
  });
  await buildOnce(help, async (outDir) => {
    const { buildGuide } = await import('./help/guide.ts');
    await buildGuide(outDir, true);
  });
}

async function buildOnce(target: string, run: (outDir: string) => Promise<void>): Promise<void> {
  if (isBuilt(target)) return;
  await run(working);
  await compress(join(working, 'assets'));
  await rename(working, target);
  console.log(`Built ${target}.`);
}

async function compress(folder: string): Promise<void> {
  for (const name of await readdir(folder, { recursive: true })) {
    const file = join(folder, name);
    if ((await stat(file)).isDirectory()) continue;
    const bytes = await readFile(file);
    // The highest quality, 11, takes ten times as long and saves a few percent.
    const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
    await writeFile(`${file}.br`, brotli);
    await writeFile(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

async function prune(): Promise<void> {
  const folders = (await readdir(builds, { withFileTypes: true })).filter((one) =>
    one.isDirectory(),
  );
  const dated = await Promise.all(
    folders.map(async ({ name }) => ({ name, at: (await stat(join(builds, name))).mtimeMs })),
  );
  dated.sort((one, other) => other.at - one.at);
  const isWork = (name: string) => name.startsWith('.');
  const isHelp = (name: string) => name.startsWith('help-');
  const old = [isHelp, (name: string) => !isHelp(name)].flatMap((isKind) =>
    dated.filter(({ name }) => !isWork(name) && isKind(name)).slice(keptBuilds),
  );
  // Left behind by builds that were killed.
  const stale = dated.filter(({ name, at }) => isWork(name) && Date.now() - at > 600_000);
  for (const { name } of [...old, ...stale]) {
    await rm(join(builds, name), { recursive: true, force: true });
  }
}
