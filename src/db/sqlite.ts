// SQLite through Node's own module. Kysely's dialect speaks to better-sqlite3's interface; this is the
// difference, plus a bounded cache of prepared statements.

import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { type Dialect, type SqliteDatabase, SqliteDialect } from 'kysely';

const maxStatements = 512;

export function createSqliteDialect(file: string): Dialect {
  return new SqliteDialect({ database: async () => openFile(file) });
}

function openFile(file: string): SqliteDatabase {
  createPrivately(file);
  const database = new DatabaseSync(file, { timeout: 10_000 });
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
  // Checkpoints wait for the disk, so the thread that writes usage makes them, at a quarter of this. Here they
  // only bound the log of a server that nobody asks anything: 16 MB.
  database.exec('pragma wal_autocheckpoint = 4000');
  const statements = new Map<string, StatementSync>();

  function prepare(sql: string) {
    const statement = statements.get(sql) ?? remember(sql);
    const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
    return {
      reader: statement.columns().length > 0,
      all: (parameters: readonly unknown[]) => statement.all(...values(parameters)),
      run: (parameters: readonly unknown[]) => statement.run(...values(parameters)),
      iterate: (parameters: readonly unknown[]) => statement.iterate(...values(parameters)),
    };
  }

  function remember(sql: string): StatementSync {
    // A deferred transaction that reads first and writes later fails when another process wrote between.
    const statement = database.prepare(sql === 'begin' ? 'begin immediate' : sql);
    // A pragma takes effect while it is prepared: one that was remembered would do nothing.
    if (sql.startsWith('pragma')) return statement;
    if (statements.size >= maxStatements) statements.clear();
    statements.set(sql, statement);
    return statement;
  }

  return { prepare, close: () => database.close() };
}

/** For its owner alone. SQLite gives the files it makes beside it the same mode. */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
