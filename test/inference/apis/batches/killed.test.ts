// A server that is killed in the middle of a batch, as a real process: another one on the same database, or the next one
// in the same folder, goes on with it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { stringify } from 'yaml';
import { openExistingDatabase } from '#db/open.ts';
import { toRawTx } from '#db/raw.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import {
  createBatch,
  readResults,
  toClient,
  toLines,
  toText,
  untilEnded,
} from '#test/support/batches.ts';
import { createDatabase, databases, stopOwnPostgres } from '#test/support/databases.ts';
import { gatewayModel } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

const key = 'mr-batches-of-a-killed-server';
const children: ChildProcess[] = [];
const lines = 60;

describe('batches of a killed server', () => {
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await stopOwnPostgres();
  });

  async function serve(folder: string, upstreamUrl: string, databaseUrl: string | null) {
    const file = join(folder, 'millrace.yaml');
    const backends = [{ name: 'a', url: upstreamUrl, model: 'scripted', server: 'vllm' }];
    const catalog = { [gatewayModel]: { backends, price: { input: 1, output: 1 } } };
    const config = {
      data_dir: folder,
      log: { level: 'silent' },
      models: { catalog, health: { probe_seconds: 3600 } },
      inference: { batches: { concurrency: 4 } },
      ...(databaseUrl === null ? {} : { database: { url: databaseUrl } }),
    };
    await writeFile(file, stringify(config));
    const args = ['src/main.js', 'serve', '--port', '0', '--config', file];
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH, MILLRACE_API_KEY: key },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    let printed = '';
    child.stdout?.on('data', (chunk) => {
      printed += chunk;
    });
    const url = await until('the server prints its address', () => {
      assert.equal(child.exitCode, null);
      return /API docs\s+(http\S+)\/docs/.exec(printed)?.[1];
    });
    return { child, client: toClient({ url, key }) };
  }

  const sumText = `select count(*) as requests, sum(cost_nano) as cost from usage_requests
  where status <> 'running'`;

  describe('a server that is killed in the middle of a batch', () => {
    for (const database of databases) {
      test(`another goes on, answers each line once and bills it once, on ${database}`, async () => {
        const upstream = await startScriptedUpstream({ words: 5, delayMs: 100 });
        const folders = await Promise.all(
          ['one', 'two'].map((name) => mkdtemp(join(tmpdir(), `millrace-batch-${name}-`))),
        );
        const [one = '', two = ''] = folders;
        const { url: databaseUrl, drop } = await createDatabase(database);
        const first = await serve(one, upstream.url, databaseUrl);
        const created = await createBatch(first.client, toText(toLines(lines)));
        await until('some lines are done', async () => {
          const { request_counts: counts } = await first.client.batches.retrieve(created.id);
          return (counts?.completed ?? 0) >= 10;
        });
        // On PostgreSQL the second server runs already when the first one dies.
        const second = databaseUrl === null ? null : await serve(two, upstream.url, databaseUrl);
        const exited = once(first.child, 'exit');
        first.child.kill('SIGKILL');
        await exited;
        const { child, client } = second ?? (await serve(one, upstream.url, databaseUrl));
        const batch = await untilEnded(client, created.id);
        assert.equal(batch.status, 'completed');
        assert.deepEqual(batch.request_counts, { total: lines, completed: lines, failed: 0 });
        const results = await readResults(client, batch.output_file_id);
        const ids = results.map((it) => it.custom_id);
        assert.deepEqual(
          ids.toSorted(),
          toLines(lines)
            .map((it) => it.custom_id)
            .toSorted(),
        );
        const tokens = results.reduce(
          (sum, it) => sum + (it.response?.body.usage?.total_tokens ?? 0),
          0,
        );
        const db = await openExistingDatabase({
          url: databaseUrl,
          poolSize: 1,
          dataDir: databaseUrl === null ? one : two,
        });
        const { rows } = await toRawTx(db).run<{ requests: number; cost: number }>(sumText, []);
        assert.deepEqual({ ...rows[0] }, { requests: lines, cost: tokens * 500 });
        await db.destroy();
        const stopped = once(child, 'exit');
        child.kill('SIGKILL');
        await stopped;
        await upstream.close();
        await drop();
        for (const folder of folders) await rm(folder, { recursive: true });
      });
    }
  });
});
