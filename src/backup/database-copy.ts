// A copy of a SQLite database that others write to, as one file without a write-ahead log, and the checks that
// such a file must pass.

import { chmodSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { toReason } from '#lib/start-error.ts';
import { BackupError, notCopied } from './errors.ts';
import type { Watcher } from './progress.ts';

/** 4 MB at SQLite's usual page size: often enough for a progress bar. */
const pagesPerStep = 1024;

/** Resolves to the schema, the name of the last migration. Needs no lock: a server may run meanwhile. */
export async function copyDatabase(
  source: string,
  target: string,
  watcher: Watcher,
): Promise<string> {
  try {
    await copyPages(source, target, watcher);
    chmodSync(target, 0o600);
    return finishCopy(source, target);
  } catch (error) {
    if (error instanceof BackupError || watcher.signal.aborted) throw error;
    throw notCopied(source, toReason(error), error);
  }
}

async function copyPages(source: string, target: string, watcher: Watcher): Promise<void> {
  const url = pathToFileURL(source);
  // The last connection to close empties the write-ahead log, which a read-only one would leave behind.
  url.searchParams.set('mode', 'rw');
  const database = new DatabaseSync(url, { timeout: 10_000 });
  try {
    const { page_size: pageBytes } = database.prepare('pragma page_size').get() as {
      page_size: number;
    };
    // Without a read transaction around it, SQLite starts the copy anew whenever another process commits,
    // and never finishes on a busy server. In WAL mode the transaction blocks no writer.
    database.exec('begin; select count(*) from sqlite_schema');
    await backup(database, target, {
      rate: pagesPerStep,
      progress({ totalPages, remainingPages }) {
        watcher.signal.throwIfAborted();
        const copied = (totalPages - remainingPages) * pageBytes;
        watcher.onProgress(copied, totalPages * pageBytes, 'copying the database');
      },
    });
    database.exec('commit');
  } finally {
    database.close();
  }
}

function finishCopy(source: string, target: string): string {
  const copy = new DatabaseSync(target);
  try {
    // One file: the copy inherits WAL mode, in which even a reader makes files beside it.
    copy.exec('pragma journal_mode = delete');
    const problem = firstProblem(copy, 'quick_check');
    if (problem !== null) throw notCopied(source, `it is damaged (${problem})`);
    return readSchema(copy) ?? notMillrace(source);
  } finally {
    copy.close();
  }
}

/** Null if SQLite finds the file sound. */
export function checkDatabase(file: string): string | null {
  try {
    const database = new DatabaseSync(file, { readOnly: true });
    try {
      return firstProblem(database, 'integrity_check');
    } finally {
      database.close();
    }
  } catch (error) {
    return toReason(error);
  }
}

function firstProblem(database: DatabaseSync, check: 'quick_check' | 'integrity_check') {
  const row = database.prepare(`pragma ${check}(1)`).get() as Record<string, string>;
  const [answer = 'no answer'] = Object.values(row);
  return answer === 'ok' ? null : answer;
}

function readSchema(database: DatabaseSync): string | undefined {
  const tables = database.prepare(
    "select name from sqlite_schema where type = 'table' and name = 'kysely_migration'",
  );
  if (tables.get() === undefined) return undefined;
  const last = database.prepare('select max(name) as name from kysely_migration').get();
  return (last as { name: string | null }).name ?? undefined;
}

function notMillrace(source: string): never {
  throw notCopied(source, 'it is not a database of Millrace');
}
