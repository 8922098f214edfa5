// Usage rows that the database did not take, in a SQLite file in the data directory. They survive a killed process.
// The file's size is bounded: a row that does not fit is refused.

import { existsSync } from 'node:fs';
import { createPrivately } from '#db/sqlite/sqlite.ts';
import { openSqlite, type SqliteConnection } from '#db/sqlite/sqlite-connection.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';

export interface Spool {
  /** Number of rows that wait, without those set aside. It is kept in memory: reading it costs nothing. */
  count(): number;
  /** Stores all rows or none. A row replaces the earlier one of the same request. */
  put(rows: readonly UsageRequestRow[]): void;
  /** The rows that were stored first, without those of a request twice. */
  first(maxRows: number): SpooledRow[];
  /** A row that was replaced since it was read stays. */
  delete(rows: readonly SpooledRow[]): void;
  /** Takes a row out of the queue and keeps it for inspection. The oldest ones beyond 1,000 are deleted. */
  setAside(row: SpooledRow, sqlState: string): void;
  close(): void;
}

export interface SpooledRow {
  readonly seq: number;
  readonly row: UsageRequestRow;
}

const pageBytes = 4096;
const maxRefused = 1000;

/** The file is created with the first row. No other process may write to it: the data directory has one server. */
export function openSpool(file: string, maxBytes: number): Spool {
  let waiting = 0;
  let opened: SqliteConnection | undefined = existsSync(file) ? open() : undefined;

  function open(): SqliteConnection {
    createPrivately(file);
    const connection = openSqlite(file, { synchronous: 'normal', checkpointPages: 1000 });
    const run = (sql: string) => connection.prepare(sql).all([]);
    run(`pragma max_page_count = ${Math.ceil(maxBytes / pageBytes)}`);
    run(`create table if not exists rows
      (seq integer primary key autoincrement, id text not null unique, row text not null)`);
    run(`create table if not exists refused
      (seq integer primary key autoincrement, sql_state text not null, row text not null)`);
    const [counted] = run('select count(*) as count from rows') as { count: number }[];
    waiting = counted?.count ?? 0;
    return connection;
  }

  /** `run` executes a statement and returns how many rows it changed. */
  function inTransaction(work: (run: (sql: string, values: unknown[]) => number) => number): void {
    opened ??= open();
    const connection = opened;
    connection.prepare('begin').run([]);
    try {
      const added = work((sql, values) => Number(connection.prepare(sql).run(values).changes));
      connection.prepare('commit').run([]);
      waiting += added;
    } catch (error) {
      connection.prepare('rollback').run([]);
      throw error;
    }
  }

  return {
    count: () => waiting,
    put: (rows) =>
      inTransaction((run) => {
        let added = 0;
        for (const row of rows) {
          added -= run('delete from rows where id = ?', [row.id]);
          added += run('insert into rows (id, row) values (?, ?)', [row.id, JSON.stringify(row)]);
        }
        return added;
      }),
    first(maxRows) {
      const read = opened?.prepare('select seq, row from rows order by seq limit ?').all([maxRows]);
      const rows = (read ?? []) as { seq: number; row: string }[];
      return rows.map(({ seq, row }) => ({ seq, row: JSON.parse(row) }));
    },
    delete: (rows) =>
      inTransaction((run) => {
        let added = 0;
        for (const { seq } of rows) added -= run('delete from rows where seq = ?', [seq]);
        return added;
      }),
    setAside: ({ seq, row }, sqlState) =>
      inTransaction((run) => {
        const added = -run('delete from rows where seq = ?', [seq]);
        run('insert into refused (sql_state, row) values (?, ?)', [sqlState, JSON.stringify(row)]);
        run('delete from refused where seq <= (select max(seq) from refused) - ?', [maxRefused]);
        return added;
      }),
    close: () => opened?.close(),
  };
}
