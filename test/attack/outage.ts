// The long form of an outage of PostgreSQL. It starts the real program and sends chats in parallel while a real
// PostgreSQL is stopped, then silent, then stopped while the server is killed with -9. Fails if a chat of a known key
// fails or is not counted exactly once. Not part of `npm test`. Argument: seconds of each outage, 10 by default.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '#db/open.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { signIn } from '#test/support/installation.ts';
import { startOutageProxy } from '#test/support/outage-proxy.ts';
import { startPostgres } from '#test/support/postgres.ts';
import { makeFolder, readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement, readRows } from '#test/support/usage/usage.ts';

const outageMs = Number(process.argv[2] ?? 10) * 1000;
const clients = 16;
const model = 'attacked';

const postgres = await startPostgres();
const proxy = await startOutageProxy(postgres.url);
const upstream = await startScriptedUpstream({ delayMs: 20 });
const dataDir = makeFolder();
const file = join(dataDir, 'millrace.yaml');
const backend = { name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' };
writeFileSync(
  file,
  JSON.stringify({
    database: { url: proxy.url },
    cloud: { driver: 'none' },
    models: { catalog: { [model]: { context_window: 8192, backends: [backend] } } },
  }),
);
const args = ['--config', file, '--data-dir', dataDir];
let server = await serveMillrace(args);
const key = readFirstSecret(server.stdout(), 'First API key');
const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
const cookie = await signIn(server.url, 'join', { token, email: 'owner@example.com' });

let answered = 0;

async function chat(): Promise<void> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Go' }] }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  answered++;
}

interface Seen {
  readonly statuses: Map<number, number>;
  slowestMs: number;
}

async function look(seen: Seen): Promise<void> {
  const startedAt = performance.now();
  const { status } = await fetch(`${server.url}/dashboard/api/me`, { headers: { cookie } });
  seen.slowestMs = Math.max(seen.slowestMs, performance.now() - startedAt);
  seen.statuses.set(status, (seen.statuses.get(status) ?? 0) + 1);
  await sleep(50);
}

/** Sends chats and reads the dashboard until `work` is done. */
async function underLoad(name: string, work: () => Promise<void>): Promise<void> {
  const [before, seen] = [answered, { statuses: new Map<number, number>(), slowestMs: 0 }];
  let isDone = false;
  const repeat = async (once: () => Promise<void>) => {
    while (!isDone) await once();
  };
  const load = [...Array.from({ length: clients }, () => repeat(chat)), repeat(() => look(seen))];
  const end = work().finally(() => {
    isDone = true;
  });
  await Promise.all([...load, end]);
  const statuses = [...seen.statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
  console.log(`${name.padEnd(9)} ${answered - before} chats, all with 200`);
  console.log(`          dashboard: ${statuses}; the slowest took ${seen.slowestMs.toFixed(0)} ms`);
}

async function assertCounted(db: Awaited<ReturnType<typeof openDatabase>>): Promise<void> {
  await until('every chat is counted', async () => (await readRows(db)).length >= answered);
  assert.equal((await readRows(db)).length, answered);
  await assertAgreement(db);
}

const open = () => openDatabase({ url: postgres.url, poolSize: 1, dataDir: makeFolder() });

await underLoad('before', () => sleep(2000));
await underLoad('stopped', async () => {
  await postgres.crash();
  await sleep(outageMs);
  await postgres.restart();
  await sleep(2000);
});
await underLoad('silent', async () => {
  await proxy.cut('silent');
  await sleep(outageMs);
  await proxy.restore();
  await sleep(2000);
});
const db = await open();
await assertCounted(db);
await underLoad('killed', async () => {
  await proxy.cut('refused');
  await sleep(outageMs);
});
await until('the rows are on disk', async () => {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return (
    /^millrace_usage_pending 0$/m.test(metrics) && /^millrace_usage_spooled [1-9]/m.test(metrics)
  );
});
server.child.kill('SIGKILL');
await server.ended;
await proxy.restore();
server = await serveMillrace(args);
await underLoad('after', () => sleep(2000));
await assertCounted(db);
console.log(`${answered} chats, each counted exactly once`);

server.child.kill('SIGTERM');
await server.ended;
await db.destroy();
await proxy.close();
await postgres.stop();
await upstream.close();
