// Kills the real server with SIGKILL while clients send requests, and starts it again on what is left: a request
// that was answered a moment before has exactly one row, long requests have what was last written, and the sums are
// those of the rows.

import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import { openDatabase } from '#db/open.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { createDatabase, databases, stopOwnPostgres } from '#test/support/databases.ts';
import { makeFolder, type RunningProcess, serveMillrace } from '#test/support/process.ts';
import { propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement, readRows } from '#test/support/usage/usage.ts';

const kills = 2;
const apiKey = `secret_test_${'0'.repeat(32)}.${'a'.repeat(32)}`;
/** What may be lost at most. Held to wherever the server itself says that a third of it was enough so far. */
const promisedMs = 50;

interface Answered {
  id: string;
  at: number;
  tokens: number;
}

for (const database of databases) {
  describe(`usage and SIGKILL on ${database}`, () => {
    test(`${kills} kills lose no finished request and count none twice`, async (context) => {
      const { url, drop } = await createDatabase(database);
      const dataDir = makeFolder();
      const random = createRandom(propertySeed);
      const answered: Answered[] = [];
      const pauses = monitorEventLoopDelay({ resolution: 5 });
      pauses.enable();
      const start = () =>
        serveMillrace(['--data-dir', dataDir, ...(url === null ? [] : ['--database-url', url])], {
          MILLRACE_API_KEY: apiKey,
          MILLRACE_LOG_LEVEL: 'warn',
        });
      const db = await openDatabase({ url, poolSize: 1, dataDir });
      const read = () => readRows(db);

      for (let kill = 0; kill < kills; kill++) {
        const server = await start();
        pauses.reset();
        const before = answered.length;
        const wanted = before + 12 + random(10);
        const long = await askLong(server);
        const clients = Array.from({ length: 3 }, () => askForever(server, answered));
        await until('there are answers', () => answered.length >= wanted);
        await until('the long request is written', async () =>
          (await read()).some((row) => row.id === long && row.completion_tokens > 0),
        );
        // Servers, models and other tests fight over the machine: one that gets no turn can't write either, and
        // we get none at times like these. The last write may take longer than any before.
        const slowestMs = Math.max(await readSlowest(server), pauses.max / 1e6);
        const lossMs = Math.max(promisedMs, 3 * slowestMs);
        await until('some are owed', () =>
          answered.slice(before).some(({ at }) => at < performance.now() - 2 * lossMs),
        );
        context.diagnostic(`the slowest write or pause took ${slowestMs} ms`);
        const killedAt = performance.now();
        server.child.kill('SIGKILL');
        await Promise.all([...clients, server.ended]);
        const rows = await read();
        const ids = new Set(rows.map(({ id }) => id));
        const owed = answered.slice(before).filter(({ at }) => at < killedAt - lossMs);
        const lost = owed.filter(({ id }) => !ids.has(id));
        assert(owed.length > 0, 'nothing was answered early enough to say anything');
        assert.deepEqual(lost, [], `kill ${kill} at ${killedAt}`);
        await assertAgreement(db);
      }

      // PostgreSQL may have other servers: there the dead are known by their silence, which is made longer.
      if (url !== null) await db.updateTable('usage_processes').set({ last_seen: 0 }).execute();
      const last = await start();
      const rows = await until<UsageRequestRow[] | null>('nothing is left running', async () => {
        const left = await read();
        return left.some(({ status }) => status === 'running') ? null : left;
      });
      last.child.kill('SIGTERM');
      await last.ended;
      await assertAgreement(db);
      const interrupted = rows.filter(({ status }) => status === 'interrupted');
      assert(interrupted.length >= kills);
      assert(interrupted.some(({ completion_tokens }) => completion_tokens > 0));
      const byId = new Map(rows.map((row) => [row.id, row]));
      for (const { id, tokens } of answered) {
        const row = byId.get(id);
        if (row?.status === 'done') assert.equal(row.completion_tokens, tokens);
      }
      context.diagnostic(`${answered.length} answers, ${rows.length} rows`);
      pauses.disable();
      await db.destroy();
      await drop();
      await stopOwnPostgres();
    });
  });
}

test('with usage.durability: request, a kill right after the last byte loses no row', async () => {
  const dataDir = makeFolder();
  const config = join(dataDir, 'millrace.yaml');
  writeFileSync(config, 'usage: { durability: request }');
  const db = await openDatabase({ url: null, poolSize: 1, dataDir });
  const ids: (string | null)[] = [];
  for (const stream of [false, true, false, true]) {
    const env = { MILLRACE_API_KEY: apiKey };
    const server = await serveMillrace(['--data-dir', dataDir, '--config', config], env);
    const responses = await Promise.all(
      [1, 2, 3].map(async (n) => {
        const response = await ask(server, { stream, max_tokens: n });
        await response.text();
        return response;
      }),
    );
    server.child.kill('SIGKILL');
    ids.push(...responses.map(({ headers }) => headers.get('x-request-id')));
    await server.ended;
    const rows = await readRows(db);
    assert.deepEqual(rows.map(({ id }) => id).sort(), ids.toSorted());
    assert(rows.every(({ completion_tokens: tokens }) => tokens > 0));
  }
  await assertAgreement(db);
  await db.destroy();
});

const ask = (server: RunningProcess, body: object) =>
  fetch(`${server.url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'llama3.1-8b-instruct', prompt: 'Once', ...body }),
  });

async function readSlowest({ url }: RunningProcess): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const seconds = /^millrace_usage_slowest_write_seconds (\S+)$/m.exec(text)?.[1];
  assert(seconds !== undefined && Number(seconds) > 0, 'nothing was written yet');
  return Number(seconds) * 1000;
}

/** Begins a stream of many seconds and reads it as it comes; answers its id. */
async function askLong(server: RunningProcess): Promise<string> {
  const response = await ask(server, { stream: true, ignore_eos: true, max_tokens: 1900 });
  response.text().catch(() => {});
  return response.headers.get('x-request-id') ?? '';
}

async function askForever(server: RunningProcess, answered: Answered[]): Promise<void> {
  for (;;) {
    try {
      const response = await ask(server, { max_tokens: 2, ignore_eos: true });
      const { usage } = (await response.json()) as { usage: { completion_tokens: number } };
      const id = response.headers.get('x-request-id') ?? '';
      answered.push({ id, at: performance.now(), tokens: usage.completion_tokens });
    } catch {
      return;
    }
  }
}
