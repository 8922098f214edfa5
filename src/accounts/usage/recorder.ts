// Records who used what: one row per request, buffered for a moment and written in batches. A short request costs
// one row in one write. A long one is written about once a second, so that a killed server loses little of it.

import type { FastifyBaseLogger } from 'fastify';
import type { UsageWriter } from '#accounts/usage/writing/writer.ts';
import type { Database } from '#db/tables/tables.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { Clock } from '#lib/clock.ts';
import { isDatabaseUnavailable } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { IndexedList } from '#lib/memory/indexed-list.ts';
import { OpenEntry, type UsageEntry, type UsageFacts } from './entry.ts';
import { createProcesses, type Processes } from './processes.ts';

export interface RecorderStatus {
  /** Requests that are running. */
  open: number;
  /** Ended requests that are not in the database yet. */
  pending: number;
  /** Requests lost because the database accepted no writes for too long. */
  dropped: number;
  /** The longest time from the end of a request to its commit: what a kill could have lost. */
  slowestMs: number;
}

export interface RecorderParts {
  db: Database;
  clock: Clock;
  log: FastifyBaseLogger;
  writer: UsageWriter;
}

export interface RecorderOptions {
  /** True if no other server uses this database: running requests of others are then orphans. */
  singleServer: boolean;
  /** True if each response waits until its row is on disk. */
  savesFirst?: boolean;
  /** This server's id in the rows of its requests. A new one by default. */
  processId?: string;
  /** Maximum ended requests that wait for the database; 100,000 by default. */
  maxPending?: number;
}

/** How long the oldest row waits for others. Half of the 50 ms that a kill may lose; the rest is for the write. */
const delayMs = 25;
/** The wait while batches are smaller than `fewRows`: waiting saves little then, and a slow disk gets more time. */
const quietDelayMs = 10;
const fewRows = 16;
/** Requests older than this are written while they run, this often. */
const longMs = 1000;
const maxRetryMs = 5000;

export function createUsageRecorder(
  parts: RecorderParts,
  { singleServer, savesFirst = false, processId = newId(), maxPending = 100_000 }: RecorderOptions,
): UsageRecorder {
  const { db, clock, log, writer } = parts;
  const processes = createProcesses(db, clock, { id: processId, singleServer });
  const pending = new PendingRows(writer, log, maxPending);
  return new UsageRecorder(parts, processes, pending, { processId, savesFirst });
}

export class UsageRecorder {
  readonly #parts: RecorderParts;
  readonly #processes: Processes;
  readonly #pending: PendingRows;
  readonly #options: { processId: string; savesFirst: boolean };
  readonly #open = new IndexedList<OpenEntry>();
  /** Those whose responses wait for their rows. */
  readonly #unsaved = new Set<OpenEntry>();
  /** Serializes writes, so that no row is in two of them at once. */
  readonly #mutex = createKeyedMutex();
  readonly #ticks: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #isQuiet = true;
  #isTicking = false;
  #isStopped = false;

  constructor(
    parts: RecorderParts,
    processes: Processes,
    pending: PendingRows,
    options: { processId: string; savesFirst: boolean },
  ) {
    this.#parts = parts;
    this.#processes = processes;
    this.#pending = pending;
    this.#options = options;
    this.#ticks = setInterval(() => this.#tick(), longMs).unref();
  }

  open(facts: UsageFacts): UsageEntry {
    // A writer that must start first is ready when the request ends.
    this.#parts.writer.prepare();
    const { processId, savesFirst } = this.#options;
    const save = savesFirst ? this.#save : null;
    const entry = new OpenEntry(facts, this.#parts.clock.now(), processId, this.#onClosed, save);
    this.#open.add(entry);
    return entry;
  }

  readonly #onClosed = (entry: OpenEntry): void => {
    this.#open.delete(entry);
    this.#pending.add(entry.row);
    this.#schedule(this.#isQuiet ? quietDelayMs : delayMs);
  };

  /** If the database does not accept the row, the response goes out, and the row is written later, as any other. */
  readonly #save = async (entry: OpenEntry): Promise<void> => {
    this.#unsaved.add(entry);
    await this.#beat().catch(() => {});
    // Those that ask during a write are in the next one together.
    await this.#serialize(async () => {
      const entries = [...this.#unsaved];
      this.#unsaved.clear();
      await this.#writeOpen(entries);
    }).catch(() => {});
  };

  /** Writes ended requests, and the progress of long ones. Rejects if the database does not accept them. */
  async flush(): Promise<void> {
    await this.#beat();
    await this.#serialize(async () => {
      await this.#writeEnded();
      await this.#writeLong();
    });
  }

  /** Closes open requests as aborted, and flushes for the last time. */
  async stop(): Promise<void> {
    const { clock, log, writer } = this.#parts;
    for (const entry of this.#open.list()) {
      const durationMs = clock.now() - entry.row.at;
      entry.close({ status: 'aborted', code: 'server_stopped', durationMs });
    }
    this.#isStopped = true;
    clearInterval(this.#ticks);
    clearTimeout(this.#timer);
    for (let waitMs = 50; !(await this.#isFlushed()); waitMs *= 2) {
      if (waitMs > maxRetryMs) {
        log.fatal({ lost: this.#pending.size }, 'usage is lost: the database accepted no writes');
        break;
      }
      await new Promise((done) => setTimeout(done, waitMs));
    }
    await writer.close();
    await this.#processes
      .leave()
      .catch((error) => log.warn({ err: error }, 'the heartbeat of usage was not removed'));
  }

  /** Closes the requests that dead servers left running. */
  sweep(): Promise<void> {
    return this.#processes.sweep();
  }

  status(): RecorderStatus {
    const { size: pending, dropped, slowestMs } = this.#pending;
    return { open: this.#open.size, pending, dropped, slowestMs };
  }

  #isFlushed(): Promise<boolean> {
    return this.flush().then(
      () => true,
      () => false,
    );
  }

  #schedule(ms: number): void {
    if (this.#isStopped) return;
    // A failure is logged and retried by `#serialize`.
    this.#timer ??= setTimeout(() => this.#serialize(() => this.#writeEnded()).catch(() => {}), ms);
  }

  /** Writes long requests. Skipped while the last tick waits, so that a hanging database does not pile ticks up. */
  #tick(): void {
    if (this.#open.size === 0 || this.#failures > 0 || this.#isTicking) return;
    this.#isTicking = true;
    this.#beat()
      .then(
        () => this.#serialize(() => this.#writeLong()),
        (error) => this.#retryLater(error),
      )
      .catch(() => {})
      .finally(() => {
        this.#isTicking = false;
      });
  }

  /**
   * Must precede every write of a running request. The rows of ended requests do not wait for it. In an outage no
   * server sees the rows, so none takes this one for dead.
   */
  async #beat(): Promise<void> {
    if (this.#open.size === 0) return;
    await this.#processes.beat().catch((error) => {
      if (!isDatabaseUnavailable(error)) throw error;
    });
  }

  #serialize(write: () => Promise<void>): Promise<void> {
    return this.#mutex.run('write', async () => {
      try {
        await write();
        this.#failures = 0;
      } catch (error) {
        this.#retryLater(error);
        throw error;
      }
    });
  }

  #retryLater(error: unknown): void {
    const retryMs = Math.min(delayMs * 2 ** this.#failures++, maxRetryMs);
    const { size: pending, dropped } = this.#pending;
    this.#parts.log.error({ err: error, pending, dropped, retryMs }, 'usage could not be written');
    this.#clearTimer();
    this.#schedule(retryMs);
  }

  async #writeEnded(): Promise<void> {
    this.#clearTimer();
    this.#isQuiet = this.#pending.size < fewRows;
    await this.#pending.write();
  }

  async #writeLong(): Promise<void> {
    const now = this.#parts.clock.now();
    const due = this.#open.list().filter(({ row, dirty }) => {
      const ageMs = now - row.at;
      // A negative age means that the clock was set back. A reserved amount is complete from the start, so a kill
      // would lose all of it.
      return dirty && (ageMs < 0 || ageMs >= longMs || row.reserved === 1);
    });
    await this.#writeOpen(due);
  }

  async #writeOpen(due: readonly OpenEntry[]): Promise<void> {
    const now = this.#parts.clock.now();
    for (let at = 0; at < due.length; at += batchRows) {
      // Entries that ended meanwhile are among the pending rows.
      const entries = due.slice(at, at + batchRows).filter(({ row }) => row.status === 'running');
      for (const entry of entries) entry.dirty = false;
      const rows = entries.map(({ row }) => ({ ...row, duration_ms: now - row.at }));
      await this.#parts.writer.write(rows).catch((error) => {
        for (const entry of entries) entry.dirty = true;
        throw error;
      });
    }
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Rows per transaction, which takes 2 to 5 ms. SQLite has no second writer meanwhile. */
export const batchRows = 128;

/**
 * The rows of requests that have ended and are not in the database yet. While the database accepts
 * nothing for long, the oldest rows are dropped and counted.
 */
class PendingRows {
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
