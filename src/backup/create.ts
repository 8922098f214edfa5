// Makes a backup: a snapshot of the database and the small files beside it, in one archive. The archive gets its
// name only when it is whole.

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { toReason } from '#lib/start-error.ts';
import { packArchive } from './archive.ts';
import { copyDatabase } from './database-copy.ts';
import { fileExists, noDatabase, noFolder, nothingToSave, notWritable } from './errors.ts';
import { type Manifest, manifestFile, manifestFormat, toEntry } from './manifest.ts';
import { countBytes, type Watcher } from './progress.ts';
import { databaseFile, stateFiles } from './state-files.ts';
import { syncFolder } from './sync-folder.ts';

export interface BackupSource {
  readonly dataDir: string;
  /** A PostgreSQL database is not in the data directory, and not in the archive. */
  readonly database: 'sqlite' | 'postgresql';
  /** Version of Millrace that makes the backup. */
  readonly version: string;
}

export interface BackupOptions extends Watcher {
  /** Replace a file that exists. */
  readonly force: boolean;
  readonly now: Date;
}

/** Throws BackupError. What was there under the name stays until the new archive is whole. */
export async function createBackup(
  source: BackupSource,
  file: string,
  options: BackupOptions,
): Promise<Manifest> {
  const target = resolve(file);
  if (existsSync(target) && (!options.force || statSync(target).isDirectory())) {
    throw fileExists(target);
  }
  const database = join(source.dataDir, databaseFile);
  if (source.database === 'sqlite' && !existsSync(database)) throw noDatabase(resolve(database));
  const folder = makeFolderBeside(target);
  try {
    const manifest = await collect(source, folder, options);
    const archive = join(folder, 'archive');
    await packArchive(folder, manifest, archive, options);
    renameSync(archive, target);
    syncFolder(dirname(target));
    return manifest;
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException;
    throw syscall === undefined ? error : notWritable(target, toReason(error));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Creates a folder on the target's disk, so that the archive can be renamed to it. Only its owner can enter. */
function makeFolderBeside(target: string): string {
  try {
    return mkdtempSync(join(dirname(target), `.${basename(target)}-`));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw noFolder(dirname(target));
    throw notWritable(target, toReason(error));
  }
}

async function collect(
  { dataDir, database, version }: BackupSource,
  folder: string,
  options: BackupOptions,
): Promise<Manifest> {
  // The database first: a backend that is added meanwhile makes secret.key before its row. The other way round
  // the archive could hold a row whose key it lacks.
  const schema =
    database === 'sqlite'
      ? await copyDatabase(join(dataDir, databaseFile), join(folder, databaseFile), options)
      : null;
  const paths = stateFiles.filter((path) => {
    if (path === databaseFile) return schema !== null;
    return copyIfThere(join(dataDir, path), join(folder, path));
  });
  if (paths.length === 0) throw nothingToSave(resolve(dataDir));
  const bytes = paths.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0);
  const count = countBytes(options, bytes, 'checksums');
  const files = [];
  for (const path of paths) files.push(await toEntry(folder, path, count));
  const manifest: Manifest = {
    format: manifestFormat,
    millrace: version,
    created_at: options.now.toISOString(),
    database,
    schema,
    files,
  };
  writeFileSync(join(folder, manifestFile), `${JSON.stringify(manifest, null, 2)}\n`, {
    mode: 0o600,
  });
  return manifest;
}

function copyIfThere(from: string, to: string): boolean {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  try {
    copyFileSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
