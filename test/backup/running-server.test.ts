// Backup and restore as an operator does it: the commands, a real server that is written to, and a second server
// on what was restored.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import {
  call,
  chat,
  type Installation,
  readRows,
  serveInstallation,
  signInAll,
  startInstallation,
} from '#test/support/installation.ts';
import { makeFolder, type RunningProcess, runMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';

const apiKey = 'sk-upstream-secret-1234567890';

async function millrace(...args: string[]) {
  const finished = await runMillrace(args);
  assert.equal(finished.code, 0, finished.stderr);
  return finished.stdout;
}

async function stop(server: RunningProcess): Promise<void> {
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
}

/** Chats one after another until it is stopped; returns the number of chats so far. */
function keepChatting(server: Installation) {
  let count = 0;
  let ended = false;
  const loop = async () => {
    while (!ended) {
      await chat(server);
      count += 1;
    }
  };
  const loops = Promise.all([loop(), loop(), loop()]);
  return {
    count: () => count,
    async stop() {
      ended = true;
      await loops;
    },
  };
}

const countRows = (file: string, sql: string) => {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return { ...database.prepare(sql).get() };
  } finally {
    database.close();
  }
};

const noLog = (dataDir: string) => {
  const log = join(dataDir, 'millrace.db-wal');
  return !existsSync(log) || statSync(log).size === 0;
};

/** Returns null for a copy without the table, or one that was made in the middle of a checkpoint. */
function countKeys(copy: string): number | null {
  try {
    return Number(countRows(copy, 'select count(*) as count from api_keys').count);
  } catch {
    return null;
  }
}

describe('backup and restore of a running server', () => {
  test('a restored installation equals the original', async (context) => {
    const upstream = await startScriptedUpstream({ model: 'org/name', apiKey });
    context.after(() => upstream.close());
    const [dataDir, folder] = [makeFolder(), makeFolder()];
    const server = await startInstallation(dataDir, { url: upstream.url, apiKey });

    const load = keepChatting(server);
    await until('the load is on', () => load.count() > 20);
    const before = load.count();
    const busy = join(folder, 'busy.tar.gz');
    await millrace('backup', busy, '--data-dir', dataDir);
    assert(load.count() > before, 'nothing was written during the backup');
    await load.stop();

    await context.test(
      'a backup made during writes is sound, its sums match its rows',
      async () => {
        assert.match(await millrace('restore', busy, '--check'), / is sound: millrace\.db, /);
        const restored = makeFolder();
        await millrace('restore', busy, '--data-dir', restored);
        const sums =
          'select sum(requests) as count, sum(completion_tokens) as tokens from usage_hours';
        const rows =
          "select count(*) as count, sum(completion_tokens) as tokens from usage_requests where status <> 'running'";
        const file = join(restored, 'millrace.db');
        assert.deepEqual(countRows(file, sums), countRows(file, rows));
      },
    );

    await until(
      'all usage is written',
      () =>
        countRows(join(dataDir, 'millrace.db'), 'select sum(requests) as count from usage_hours')
          .count === load.count(),
    );
    const archive = join(folder, 'idle.tar.gz');
    const said = await millrace('backup', archive, '--data-dir', dataDir);
    assert.match(said, /Saved millrace\.db, secret\.key, host-id, models\/store-id to /);
    assert.match(said, /Not included: model weights, the disks of machines/);
    assert.equal(statSync(archive).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(folder).sort(), ['busy.tar.gz', 'idle.tar.gz']);

    await context.test('a directory that a server uses is refused, even with --force', async () => {
      const args = ['restore', archive, '--data-dir', dataDir, '--force'];
      const { code, stderr } = await runMillrace(args);
      assert.equal(code, 1);
      assert.match(stderr, /^A server is running on .*\. Stop it first, then restore\.$/m);
    });

    await stop(server);
    assert(noLog(dataDir), 'the write-ahead log is empty after SIGTERM');
    const restored = makeFolder();
    await millrace('restore', archive, '--data-dir', restored);
    assert.deepEqual(readRows(restored), readRows(dataDir));

    const second = { ...(await serveInstallation(restored)), key: server.key };
    const asked = upstream.requests.length;
    await chat(second);
    assert.equal(upstream.requests.length, asked + 1, 'the sealed key opens the backend');
    assert.equal((await signInAll(second.url)).length, 2);
    const authorization = `Bearer ${server.key}`;
    for (const path of ['instances', 'file-systems']) {
      const { data } = await call<{ data: unknown[] }>(`${second.url}/api/v1/${path}`, {
        authorization,
      });
      assert.equal(data.length, 1, path);
    }
    await stop(second);
  });

  test('soon after the start millrace.db alone holds everything', async () => {
    const dataDir = makeFolder();
    const server = await serveInstallation(dataDir);
    const file = join(dataDir, 'millrace.db');
    const copy = join(makeFolder(), 'copy.db');
    await until('the file alone has the first key', () => {
      copyFileSync(file, copy);
      return countKeys(copy) === 1;
    });
    await stop(server);
  });
});
