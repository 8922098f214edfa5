// Usage on a real database with a clock turned by hand, and the sums that must always agree.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { pino } from 'pino';
import type { UsageFacts } from '#accounts/usage/entry.ts';
import {
  createUsageRecorder,
  type RecorderOptions,
  type UsageRecorder,
} from '#accounts/usage/recorder.ts';
import { type RetentionOptions, UsageRetention } from '#accounts/usage/retention.ts';
import { toRequestRows, toStoredRows } from '#accounts/usage/writing/names.ts';
import { sumRows } from '#accounts/usage/writing/write-batch.ts';
import { createUsageWriter, createUsageWriterThread } from '#accounts/usage/writing/writer.ts';
import { openDatabase, sqliteFile } from '#db/open.ts';
import { toRawTx } from '#db/raw.ts';
import type { Database } from '#db/tables/tables.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { createIdSequence } from '#lib/ids.ts';
import { createHandClock, type HandClock } from '#test/support/clock.ts';
import { createDatabase, type DatabaseKind, stopOwnPostgres } from '#test/support/databases.ts';

export const accountId = 'a'.repeat(32);
export const keyId = 'b'.repeat(32);
export const nextId = createIdSequence();

export interface TestUsage {
  db: Database;
  dataDir: string;
  clock: HandClock;
  usage: UsageRecorder;
  /** Another server on the same database. If `through` is given, it writes its batches there. */
  another(options?: Partial<RecorderOptions>, through?: Database): UsageRecorder;
  rows(): Promise<UsageRequestRow[]>;
}

const cleanups: (() => Promise<void>)[] = [];

after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  await stopOwnPostgres();
});

export async function openTestUsage(
  kind: DatabaseKind,
  options: Partial<RecorderOptions> = {},
): Promise<TestUsage> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-usage-'));
  const { url, drop } = await createDatabase(kind);
  const db = await openDatabase({ url, poolSize: 4, dataDir });
  const clock = createHandClock();
  cleanups.push(
    () => rm(dataDir, { recursive: true, force: true }),
    drop,
    () => db.destroy(),
  );
  const another: TestUsage['another'] = (over = {}, through = db) => {
    const isThread = kind === 'sqlite' && through === db;
    const writer = isThread
      ? createUsageWriterThread(sqliteFile(dataDir))
      : createUsageWriter(through);
    const log = pino({ level: 'silent' });
    const recorder = createUsageRecorder(
      { db: through, clock, log, writer },
      { singleServer: false, ...over },
    );
    cleanups.push(() => recorder.stop());
    return recorder;
  };
  return { db, dataDir, clock, usage: another(options), another, rows: () => readRows(db) };
}

/** The rows with their names. Null prototypes are SQLite's own. */
export async function readRows(db: Database): Promise<UsageRequestRow[]> {
  const stored = await db.selectFrom('usage_requests').selectAll().orderBy('id').execute();
  return toRequestRows(toRawTx(db), stored);
}

/** Inserts rows without adding them to the sums. */
export async function insertRows(db: Database, rows: UsageRequestRow[]): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const stored = await toStoredRows(toRawTx(tx), rows);
    await tx.insertInto('usage_requests').values(stored).execute();
  });
}

export const openRetention = (
  { db, clock }: Pick<TestUsage, 'db' | 'clock'>,
  options: Partial<RetentionOptions>,
  log = pino({ level: 'silent' }),
): UsageRetention =>
  new UsageRetention(db, clock, log, {
    requestDays: 90,
    hourDays: 800,
    maxRows: 1_000_000,
    ...options,
  });

export const facts = (over: Partial<UsageFacts> = {}): UsageFacts => ({
  id: nextId(),
  accountId,
  keyId,
  userId: null,
  operation: 'chat',
  model: 'm',
  ...over,
});

/** One that ended, as it is written. */
export const endedRow = (over: Partial<UsageRequestRow> = {}): UsageRequestRow => ({
  id: nextId(),
  account_id: accountId,
  key_id: null,
  user_id: null,
  operation: 'chat',
  model: 'm',
  served_model: 'm',
  backend: 'one',
  at: Date.UTC(2026, 0, 1),
  status: 'done',
  code: null,
  prompt_tokens: 10,
  completion_tokens: 5,
  cached_tokens: 0,
  first_token_ms: 7,
  duration_ms: 20,
  cost_nano: 25,
  reserved: 0,
  process: null,
  ...over,
});

/** Ten tokens in, five out, a cost of 100. */
export function serveOne(usage: UsageRecorder, over: Partial<UsageFacts> = {}): string {
  const given = facts(over);
  const entry = usage.open(given);
  entry.progress({ servedModel: given.model, backend: 'one', promptTokens: 10 });
  entry.progress({ completionTokens: 5, cachedTokens: 2, firstTokenMs: 7, costNano: 100 });
  entry.close({ status: 'done', code: null, durationMs: 20 });
  return given.id;
}

/** What the rows add up to is what the hours and the months say, to the last token. */
export async function assertAgreement(db: Database): Promise<void> {
  const ended = (await readRows(db)).filter(({ status }) => status !== 'running');
  const { hours, months } = sumRows(ended);
  const inDatabase = {
    hours: await db.selectFrom('usage_hours').selectAll().execute(),
    spend: await db.selectFrom('spend').selectAll().execute(),
  };
  assert.deepEqual(sorted(inDatabase.hours), sorted(hours));
  assert.deepEqual(sorted(inDatabase.spend), sorted(months));
}

const sorted = (rows: object[]) =>
  rows
    .map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))))
    .sort();
