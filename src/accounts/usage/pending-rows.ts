// The rows of requests that have ended and are not in the database yet. The buffer is bounded: while the database
// accepts nothing for long, the oldest rows are dropped and counted.

import type { FastifyBaseLogger } from 'fastify';
import type { UsageRequestRow } from '#db/tables.ts';
import type { UsageWriter } from './writer.ts';

/** Rows per transaction, which takes 2 to 5 ms. SQLite has no second writer meanwhile. */
export const batchRows = 128;

export class PendingRows {
  readonly #writer: UsageWriter;
  readonly #log: FastifyBaseLogger;
  readonly #maxRows: number;
  #rows: UsageRequestRow[] = [];
  /** When the oldest row was added, by `performance.now`. */
  #oldestAt = 0;
  #dropped = 0;
  #slowestMs = 0;

  constructor(writer: UsageWriter, log: FastifyBaseLogger, maxRows: number) {
    this.#writer = writer;
    this.#log = log;
    this.#maxRows = maxRows;
  }

  get size(): number {
    return this.#rows.length;
  }

  /** Rows lost since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The longest time from adding a row to its commit since the start. */
  get slowestMs(): number {
    return this.#slowestMs;
  }

  add(row: UsageRequestRow): void {
    if (this.#rows.length === 0) this.#oldestAt = performance.now();
    this.#rows.push(row);
    this.#dropExcess();
  }

  /** Writes the rows that are here now. Rows added meanwhile wait for the next call. */
  async write(): Promise<void> {
    const [oldestAt, startedAt] = [this.#oldestAt, performance.now()];
    for (let left = this.#rows.length; left > 0; left -= batchRows) {
      const rows = this.#rows.splice(0, Math.min(left, batchRows));
      try {
        await this.#writer.write(rows);
      } catch (error) {
        this.#rows = rows.concat(this.#rows);
        this.#oldestAt = oldestAt;
        this.#dropExcess();
        throw error;
      }
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - oldestAt);
    }
    this.#oldestAt = Math.max(this.#oldestAt, startedAt);
  }

  #dropExcess(): void {
    const count = this.#rows.length - this.#maxRows;
    if (count <= 0) return;
    this.#rows.splice(0, count);
    if (this.#dropped === 0) {
      this.#log.fatal(
        { maxPending: this.#maxRows },
        'usage is being lost: the database accepts no writes',
      );
    }
    this.#dropped += count;
  }
}
