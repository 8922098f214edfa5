// Who used what: one row per request, kept in memory for a moment and written in batches. Short requests
// cost one row in one write; long ones are written about once a second, so that a killed server loses
// little of them.

import type { FastifyBaseLogger } from 'fastify';
import type { Database, UsageRequestRow } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { IndexedList } from '#lib/memory/indexed-list.ts';
import { OpenEntry, type UsageEntry, type UsageFacts } from './entry.ts';
import { createProcesses } from './processes.ts';
import { readSpend, type Spend } from './spend.ts';
import type { Batch } from './writer.ts';

export interface Usage {
  open(facts: UsageFacts): UsageEntry;
  /** Writes what ended, and how far long requests are. Throws when the database does not take it. */
  flush(): Promise<void>;
  /** The last flush. What is still open is closed as aborted. */
  stop(): Promise<void>;
  /** The key id null means the account as a whole; the month is like `2026-11`. */
  readSpend(accountId: string, keyId: string | null, month: string): Promise<Spend>;
  /** Closes what servers that are gone left running. */
  sweep(): Promise<void>;
  status(): UsageBuffer;
}

export interface UsageBuffer {
  /** Requests that run. */
  open: number;
  /** Ended, and not in the database yet. */
  pending: number;
  /** Lost, because the database took nothing for too long. */
  dropped: number;
  /** The longest that a request has been from its end to the database: what a kill could have lost. */
  slowestMs: number;
}

export interface UsageOptions {
  /** No other server uses this database: whatever runs and is not ours was left behind. */
  alone: boolean;
  /** Of this server; a new one unless somebody else must know it, too. */
  processId?: string;
  maxPending?: number;
}

/** Of the oldest row. Leaves as much again for a busy process and the write, of the 50 ms that are promised. */
const delayMs = 25;
/** Where a batch would hold few rows, waiting saves little, and a slow disk gets more of the time. */
const quietDelayMs = 10;
const fewRows = 16;
const longMs = 1000;
const mostDelayMs = 5000;
/** Rows per transaction: with SQLite nobody else can write meanwhile, which is 2 to 5 ms. */
export const batchRows = 128;

export function createUsage(
  db: Database,
  clock: Clock,
  { log, batch }: { log: FastifyBaseLogger; batch: Batch },
  { alone, processId = newId(), maxPending = 100_000 }: UsageOptions,
): Usage {
  const processes = createProcesses(db, clock, { id: processId, alone });
  const open = new IndexedList<OpenEntry>();
  let pending: UsageRequestRow[] = [];
  /** When the oldest of them ended. */
  let pendingSince = 0;
  let slowestMs = 0;
  let dropped = 0;
  let failures = 0;
  let isQuiet = true;
  let timer: NodeJS.Timeout | undefined;
  let work: Promise<void> = Promise.resolve();
  let stopped = false;
  let isTicking = false;
  const ticks = setInterval(tick, longMs).unref();

  function onClosed(entry: OpenEntry): void {
    open.delete(entry);
    if (pending.length === 0) pendingSince = performance.now();
    pending.push(entry.row);
    if (pending.length > maxPending) dropOldest();
    schedule(isQuiet ? quietDelayMs : delayMs);
  }

  function dropOldest(): void {
    const count = pending.length - maxPending;
    if (count <= 0) return;
    pending.splice(0, count);
    if (dropped === 0) log.fatal({ maxPending }, 'usage is being lost: the database takes nothing');
    dropped += count;
  }

  function schedule(ms: number): void {
    if (!stopped) timer ??= setTimeout(run, ms);
  }

  /** Its failure is logged, and tried again, where it happens. */
  function run(): void {
    inTurn(writeEnded).catch(() => {});
  }

  /** Not again while the last one waits: a database that hangs would gather them. */
  function tick(): void {
    if (open.size === 0 || failures > 0 || isTicking) return;
    isTicking = true;
    beat()
      .then(() => inTurn(writeLong), retryLater)
      .catch(() => {})
      .finally(() => {
        isTicking = false;
      });
  }

  /** One at a time, so that no row is in two writes at once. */
  function inTurn(job: () => Promise<void>): Promise<void> {
    const mine = work.then(job);
    work = mine.then(
      () => {
        failures = 0;
      },
      (error) => retryLater(error),
    );
    return mine;
  }

  async function flush(): Promise<void> {
    await beat();
    await inTurn(async () => {
      await writeEnded();
      await writeLong();
    });
  }

  /** Before anything is written that runs. No row waits for it. */
  async function beat(): Promise<void> {
    if (open.size > 0) await processes.beat();
  }

  function retryLater(error: unknown): void {
    const retryMs = Math.min(delayMs * 2 ** failures++, mostDelayMs);
    const state = { err: error, pending: pending.length, dropped, retryMs };
    log.error(state, 'usage could not be written');
    clearTimeout(timer);
    timer = undefined;
    schedule(retryMs);
  }

  /** What is there now: what comes meanwhile makes a batch of its own. */
  async function writeEnded(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const [since, begunAt] = [pendingSince, performance.now()];
    isQuiet = pending.length < fewRows;
    for (let left = pending.length; left > 0; left -= batchRows) {
      const rows = pending.splice(0, Math.min(left, batchRows));
      try {
        await batch.write(rows);
      } catch (error) {
        pending = rows.concat(pending);
        pendingSince = since;
        dropOldest();
        throw error;
      }
      slowestMs = Math.max(slowestMs, performance.now() - since);
    }
    pendingSince = Math.max(pendingSince, begunAt);
  }

  async function writeLong(): Promise<void> {
    const now = clock.now();
    const long = open.list().filter(({ row }) => {
      const ageMs = now - row.at;
      // Below 0 the clock was set back. A reserved amount is whole from the start, and so is what a kill loses.
      return ageMs < 0 || ageMs >= longMs || row.reserved === 1;
    });
    const due = long.filter(({ dirty }) => dirty);
    for (let at = 0; at < due.length; at += batchRows) {
      // Those that ended meanwhile are among the pending.
      const entries = due.slice(at, at + batchRows).filter(({ row }) => row.status === 'running');
      for (const entry of entries) entry.dirty = false;
      const rows = entries.map(({ row }) => ({ ...row, duration_ms: now - row.at }));
      await batch.write(rows).catch((error) => {
        for (const entry of entries) entry.dirty = true;
        throw error;
      });
    }
  }

  const isFlushed = () =>
    flush().then(
      () => true,
      () => false,
    );

  async function stop(): Promise<void> {
    for (const entry of open.list()) {
      const durationMs = clock.now() - entry.row.at;
      entry.close({ status: 'aborted', code: 'server_stopped', durationMs });
    }
    stopped = true;
    clearInterval(ticks);
    clearTimeout(timer);
    for (let waitMs = 50; !(await isFlushed()); waitMs *= 2) {
      if (waitMs > mostDelayMs) {
        log.fatal({ lost: pending.length }, 'usage is lost: the database took nothing to the end');
        break;
      }
      await new Promise((done) => setTimeout(done, waitMs));
    }
    await batch.close();
    await processes.leave().catch((error) => log.warn({ err: error }, 'usage process not removed'));
  }

  return {
    open(facts) {
      // Whoever writes it is up before it ends.
      batch.prepare();
      const entry = new OpenEntry(facts, clock.now(), processId, onClosed);
      open.add(entry);
      return entry;
    },
    flush,
    stop,
    readSpend: (accountId, keyId, month) => readSpend(db, accountId, keyId, month),
    sweep: () => processes.sweep(),
    status: () => ({ open: open.size, pending: pending.length, dropped, slowestMs }),
  };
}
