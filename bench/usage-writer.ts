// What the thread that writes usage to SQLite costs the main thread: its CPU per batch, and how long its own writes
// wait while batches are written one after the other. Usage: node bench/usage-writer.ts

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { batchRows } from '../src/accounts/usage/recorder.ts';
import { createUsageWriterThread } from '../src/accounts/usage/writing/writer.ts';
import { openDatabase, sqliteFile } from '../src/db/open.ts';
import type { UsageRequestRow } from '../src/db/tables/usage-rows.ts';
import { newId } from '../src/lib/ids.ts';

const batches = 50;
const accountId = newId();

/** A batch with a key of its own per row, so that it touches as many sums as it can. */
const toRows = () =>
  Array.from(
    { length: batchRows },
    (): UsageRequestRow => ({
      id: newId(),
      account_id: accountId,
      key_id: newId(),
      user_id: null,
      operation: 'chat',
      model: 'm',
      served_model: 'm',
      backend: 'one',
      at: Date.now(),
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
    }),
  );

function report(what: string, values: number[]): void {
  const sorted = values.toSorted((a, b) => a - b);
  const [median, p99, max] = [0.5, 0.99, 1].map(
    (share) => sorted[Math.ceil(sorted.length * share) - 1]?.toFixed(1) ?? '-',
  );
  console.log(`${what}: median ${median} ms, p99 ${p99} ms, maximum ${max} ms of ${values.length}`);
}

const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
const db = await openDatabase({ url: null, poolSize: 1, dataDir });
await db.insertInto('accounts').values({ id: accountId, name: '0', created_at: 0 }).execute();
const thread = createUsageWriterThread(sqliteFile(dataDir));
await thread.write(toRows());

const cpuMs: number[] = [];
for (let turn = 0; turn < batches; turn++) {
  const rows = toRows();
  const before = process.threadCpuUsage();
  await thread.write(rows);
  const { user, system } = process.threadCpuUsage(before);
  cpuMs.push((user + system) / 1000);
}
report(`CPU of the main thread for a batch of ${batchRows} rows (goal: under 5 ms)`, cpuMs);

const waitMs: number[] = [];
let isDone = false;
const writing = (async () => {
  for (let turn = 0; turn < batches; turn++) await thread.write(toRows());
  isDone = true;
})();
while (!isDone) {
  const begunMs = performance.now();
  await db
    .updateTable('accounts')
    .set({ name: `${waitMs.length}` })
    .execute();
  waitMs.push(performance.now() - begunMs);
  await pause(1);
}
await writing;
report('a write of the main thread beside them (goal: median under 100 ms)', waitMs);
await thread.close();
await db.destroy();
await rm(dataDir, { recursive: true });
