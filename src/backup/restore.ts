// Restores a backup into a data directory that no server uses. Everything is unpacked and verified beside the
// state before any of it is touched.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeDataDirectory } from '#db/data-directory.ts';
import { migrationNames } from '#db/migrate.ts';
import { type DataLock, lockData } from '#lib/computer/data-lock.ts';
import { StartError, toReason } from '#lib/start-error.ts';
import { readManifest, unpackArchive } from './archive.ts';
import { checkDatabase } from './database-copy.ts';
import { BackupError, damaged, hasState, serverRuns, tooNew } from './errors.ts';
import { type Manifest, toEntry } from './manifest.ts';
import { commitRestore, finishRestore } from './pending-restore.ts';
import { countBytes, type Watcher } from './progress.ts';
import { databaseFile, stateFiles } from './state-files.ts';

export interface RestoreOptions extends Watcher {
  /** Replace state that is there, and keep it aside. */
  readonly force: boolean;
  readonly now: Date;
}

export interface Restored {
  readonly manifest: Manifest;
  /** Where the earlier state is; null if there was none. */
  readonly aside: string | null;
}

const stagingPrefix = '.restoring-';

/** Throws BackupError. A crash leaves either the old state or, from the next start on, the new one. */
export async function restoreBackup(
  file: string,
  dataDir: string,
  options: RestoreOptions,
): Promise<Restored> {
  const manifest = await readManifest(file);
  refuseNewer(manifest);
  makeDataDirectory(dataDir);
  const lock = lockOrRefuse(dataDir);
  try {
    finishRestore(dataDir);
    removeLeftovers(dataDir);
    const earlier = stateFiles.filter((path) => existsSync(join(dataDir, path)));
    if (earlier.length > 0 && !options.force) throw hasState(resolve(dataDir), earlier);
    const staged = mkdtempSync(join(dataDir, stagingPrefix));
    try {
      await unpackAndVerify(file, staged, manifest, options);
      const aside = `before-restore-${options.now.toISOString().replaceAll(/[:.]/g, '-')}`;
      for (const { path } of manifest.files) sync(join(staged, path));
      commitRestore(dataDir, staged, { files: manifest.files.map(({ path }) => path), aside });
      finishRestore(dataDir);
      return { manifest, aside: earlier.length === 0 ? null : resolve(dataDir, aside) };
    } finally {
      rmSync(staged, { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
}

/** Unpacks beside the archive, where large files are at home, verifies everything, and leaves nothing behind. */
export async function verifyBackup(file: string, watcher: Watcher): Promise<Manifest> {
  const manifest = await readManifest(file);
  refuseNewer(manifest);
  const folder = mkdtempSync(join(dirname(resolve(file)), '.verifying-'));
  try {
    await unpackAndVerify(file, folder, manifest, watcher);
    return manifest;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function refuseNewer({ millrace, schema }: Manifest): void {
  if (schema === null || migrationNames.includes(schema)) return;
  throw tooNew({ millrace, schema }, migrationNames.at(-1) as string);
}

function lockOrRefuse(dataDir: string): DataLock {
  try {
    return lockData(dataDir);
  } catch (error) {
    if (error instanceof StartError) throw serverRuns(resolve(dataDir));
    throw error;
  }
}

/** Deletes the staging folders of restores killed before they committed. The lock is held, so none is in use. */
function removeLeftovers(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith(stagingPrefix)) rmSync(join(dataDir, name), { recursive: true });
  }
}

async function unpackAndVerify(
  file: string,
  folder: string,
  manifest: Manifest,
  watcher: Watcher,
): Promise<void> {
  await unpackArchive(file, folder, manifest, watcher);
  const bytes = manifest.files.reduce((sum, entry) => sum + entry.bytes, 0);
  const count = countBytes(watcher, bytes, 'verifying');
  for (const { path, sha256 } of manifest.files) {
    if (!existsSync(join(folder, path))) throw damaged(file, `${path} is missing or cut short`);
    const found = await toEntry(folder, path, count);
    if (found.sha256 !== sha256) throw damaged(file, `${path} differs from its checksum`);
  }
  if (manifest.schema === null) return;
  const problem = checkDatabase(join(folder, databaseFile));
  if (problem !== null) throw damaged(file, `SQLite finds the database unsound (${problem})`);
}

function sync(file: string): void {
  try {
    const handle = openSync(file, 'r+');
    fsyncSync(handle);
    closeSync(handle);
  } catch (error) {
    throw new BackupError(`${file} can't be written: ${toReason(error)}. Nothing was changed.`);
  }
}
