// Usage rows that the database did not take, in a SQLite file in the data directory. They survive a killed process.
// The file's size is bounded: a row that does not fit is refused.

import { existsSync } from 'node:fs';
import { createPrivately } from '#db/sqlite.ts';
import { openSqlite, type SqliteConnection } from '#db/sqlite-connection.ts';
import type { UsageRequestRow } from '#db/tables.ts';

export interface Spool {
  /** True if it holds rows; cheap enough for every batch. */
  hasRows(): boolean;
  count(): number;
  /** Stores all rows or none. A row replaces the earlier one of the same request. */
  put(rows: readonly UsageRequestRow[]): void;
  /** The rows that were stored first, without those of a request twice. */
  first(maxRows: number): SpooledRow[];
  /** A row that was replaced since it was read stays. */
  delete(rows: readonly SpooledRow[]): void;
  close(): void;
}

export interface SpooledRow {
  readonly seq: number;
  readonly row: UsageRequestRow;
}

const pageBytes = 4096;

/** The file is created with the first row. Servers that share a data directory share the file. */
export function openSpool(file: string, maxBytes: number): Spool {
  let opened: SqliteConnection | undefined = existsSync(file) ? open() : undefined;

  function open(): SqliteConnection {
    createPrivately(file);
    const connection = openSqlite(file, { synchronous: 'normal', checkpointPages: 1000 });
    const run = (sql: string) => connection.prepare(sql).all([]);
    run(`pragma max_page_count = ${Math.ceil(maxBytes / pageBytes)}`);
    run(`create table if not exists rows
      (seq integer primary key autoincrement, id text not null unique, row text not null)`);
    return connection;
  }

  function inTransaction(work: (connection: SqliteConnection) => void): void {
    opened ??= open();
    const connection = opened;
    connection.prepare('begin').run([]);
    try {
      work(connection);
      connection.prepare('commit').run([]);
    } catch (error) {
      connection.prepare('rollback').run([]);
      throw error;
    }
  }

  const read = <Row>(sql: string, values: unknown[] = []): Row[] =>
    opened === undefined ? [] : (opened.prepare(sql).all(values) as Row[]);

  return {
    hasRows: () => read('select 1 from rows limit 1').length > 0,
    count: () => read<{ count: number }>('select count(*) as count from rows')[0]?.count ?? 0,
    put: (rows) =>
      inTransaction((connection) => {
        const insert = connection.prepare('insert or replace into rows (id, row) values (?, ?)');
        for (const row of rows) insert.run([row.id, JSON.stringify(row)]);
      }),
    first: (maxRows) =>
      read<{ seq: number; row: string }>('select seq, row from rows order by seq limit ?', [
        maxRows,
      ]).map(({ seq, row }) => ({ seq, row: JSON.parse(row) })),
    delete: (rows) =>
      inTransaction((connection) => {
        for (const { seq } of rows) connection.prepare('delete from rows where seq = ?').run([seq]);
      }),
    close: () => opened?.close(),
  };
}
