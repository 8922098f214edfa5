// The size of a usage row in SQLite, and the time of the usage pages with few and with many rows, in one run.
//
//   node bench/usage.ts [rows]      default: 1,000,000

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createUsageRequests } from '../src/accounts/usage/requests.ts';
import { createUsageSummaries } from '../src/accounts/usage/summaries.ts';
import { createUsageWriter } from '../src/accounts/usage/writing/writer.ts';
import { openDatabase, sqliteFile } from '../src/db/open.ts';
import type { Database } from '../src/db/tables/tables.ts';
import type { UsageRequestRow } from '../src/db/tables/usage-rows.ts';
import { createIdSequence, newId } from '../src/lib/ids.ts';

const rows = Number(process.argv[2] ?? 1_000_000);
const few = Math.min(rows, 100_000);
const batch = 128;
const days = 60;
const now = Date.UTC(2026, 10, 16);
const firstAt = now - days * 86_400_000;
const accountId = newId();
const keys = Array.from({ length: 12 }, newId);
const users = Array.from({ length: 5 }, newId);
const models = [
  'hermes3-405b',
  'llama3.1-8b-instruct',
  'qwen2.5-coder-32b-instruct',
  'deepseek-r1',
];
const backends = ['vllm-1', 'vllm-2', 'sglang-h100'];
const nextId = createIdSequence();

/** Deterministic, so that runs compare. */
const pick = <T>(list: readonly T[], n: number): T => list[(n * 2_654_435_761) % list.length] as T;

function toRow(n: number, total: number): UsageRequestRow {
  const isSession = n % 20 === 0;
  const isError = n % 50 === 0;
  const model = pick(models, n % 997);
  return {
    id: nextId(),
    account_id: accountId,
    key_id: isSession ? null : pick(keys, n % 1009),
    user_id: isSession ? pick(users, n % 101) : null,
    operation: n % 10 === 0 ? 'text_completion' : 'chat',
    model,
    served_model: model,
    backend: isError ? '' : pick(backends, n % 991),
    at: Math.floor(firstAt + (n / total) * (now - firstAt)),
    status: isError ? 'failed' : 'done',
    code: isError ? 'upstream_error' : null,
    prompt_tokens: 200 + (n % 6000),
    completion_tokens: n % 900,
    cached_tokens: n % 3 === 0 ? n % 200 : 0,
    first_token_ms: isError ? null : 40 + (n % 700),
    duration_ms: 300 + (n % 20_000),
    cost_nano: 150_000 + (n % 900_000) * 7,
    reserved: 0,
    process: null,
  };
}

async function fill(db: Database, count: number): Promise<void> {
  const writer = createUsageWriter(db);
  for (let n = 0; n < count; n += batch) {
    const length = Math.min(batch, count - n);
    await writer.write(Array.from({ length }, (_, at) => toRow(n + at, count)));
  }
}

/** Bytes of the requests' tables and indexes, without the sums. */
function sizeOf(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true });
  const { bytes } = database
    .prepare(
      `select sum(pgsize) as bytes from dbstat join sqlite_schema using (name)
       where tbl_name in ('usage_requests', 'usage_names')`,
    )
    .get() as { bytes: number };
  database.close();
  return bytes;
}

/** Median of the times of a call, in milliseconds. */
async function time(call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < 31; n++) {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b)[15] as number;
}

function toPages(db: Database): Record<string, () => Promise<unknown>> {
  const requests = createUsageRequests(db);
  const summaries = createUsageSummaries(db);
  const deep = `${Math.floor((firstAt + now) / 2)}.${'0'.repeat(32)}`;
  const week = { from: now - 7 * 86_400_000, to: now, step: 'day' } as const;
  return {
    'requests, first page': () => requests.page(accountId, { limit: 50 }),
    'requests, page in the middle': () => requests.page(accountId, { limit: 50, before: deep }),
    'requests of a model': () => requests.page(accountId, { limit: 50, model: models[1] }),
    'requests of a key': () => requests.page(accountId, { limit: 50, key: keys[7] }),
    'requests that failed': () => requests.page(accountId, { limit: 50, status: 'failed' }),
    'requests of an unknown model': () => requests.page(accountId, { limit: 50, model: 'none' }),
    'usage of a week by model': () => summaries.list(accountId, { ...week, by: 'model' }),
  };
}

const folders: string[] = [];
async function open(count: number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  folders.push(dataDir);
  const db = await openDatabase({ url: null, poolSize: 1, dataDir });
  const start = performance.now();
  await fill(db, count);
  const seconds = (performance.now() - start) / 1000;
  const perRow = (sizeOf(sqliteFile(dataDir)) / count).toFixed(0);
  const rate = (count / seconds).toFixed(0);
  console.log(`${count} rows: ${perRow} bytes per row; ${rate} rows written per second`);
  return db;
}

const [small, large] = [await open(few), await open(rows)];
const largePages = toPages(large);
for (const [name, call] of Object.entries(toPages(small))) {
  const [before, after] = [await time(call), await time(largePages[name] ?? call)];
  const ratio = (after / before).toFixed(2);
  console.log(`${name}: ${before.toFixed(2)} ms, ${after.toFixed(2)} ms: ${ratio} times`);
}
for (const db of [small, large]) await db.destroy();
for (const folder of folders) rmSync(folder, { recursive: true });
