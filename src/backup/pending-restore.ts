// The second half of a restore, which survives a crash. A restore stages every file in a folder of the data
// directory, and renaming that folder is the moment that counts. From then on the staged state is the state:
// what is left to move is moved here, by the command or by the next start of the server.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { databaseSideFiles, keepOrphansFile, stateFiles } from './state-files.ts';
import { syncFolder } from './sync-folder.ts';

const committed = '.restored';
const planFile = 'plan.json';

interface Plan {
  /** Paths of the staged files. */
  readonly files: readonly string[];
  /** The folder in the data directory that earlier state is moved to. */
  readonly aside: string;
}

/** The staged folder must be in the data directory, with everything in it synced. */
export function commitRestore(dataDir: string, staged: string, plan: Plan): void {
  writeFileSync(join(staged, planFile), JSON.stringify(plan), { mode: 0o600, flush: true });
  syncFolder(staged);
  renameSync(staged, join(dataDir, committed));
  syncFolder(dataDir);
}

/**
 * Does nothing unless a restore was committed. May be repeated after a crash at any point. Call it under the data
 * directory's lock and before anything reads the state.
 */
export function finishRestore(dataDir: string): void {
  const staged = join(dataDir, committed);
  if (!existsSync(staged)) return;
  const plan = JSON.parse(readFileSync(join(staged, planFile), 'utf8')) as Plan;
  const setAside = (path: string) => move(dataDir, join(dataDir, plan.aside), path);
  // First what has no successor: SQLite must never see the new database beside the old log.
  for (const path of [...databaseSideFiles, ...stateFiles]) {
    if (!plan.files.includes(path)) setAside(path);
  }
  for (const path of plan.files) {
    // A file that is not staged any more is in its place already, and must not be set aside.
    if (!existsSync(join(staged, path))) continue;
    setAside(path);
    move(staged, dataDir, path);
  }
  writeFileSync(join(dataDir, keepOrphansFile), keepOrphansText, { mode: 0o600, flush: true });
  syncFolder(dataDir);
  rmSync(staged, { recursive: true });
}

const keepOrphansText =
  'This installation was restored from a backup. Machines that belong to no instance are kept.\n' +
  'Delete this file to let the server remove them.\n';

function move(from: string, to: string, path: string): void {
  if (!existsSync(join(from, path))) return;
  const target = join(to, path);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  renameSync(join(from, path), target);
  syncFolder(dirname(target));
}
