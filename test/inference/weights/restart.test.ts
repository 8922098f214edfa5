// A server that is killed in the middle of a pull, as a real process, on both databases.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createDatabase, databases, stopOwnPostgres } from '#test/support/databases.ts';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub } from '#test/support/hub.ts';
import { readFirstSecret } from '#test/support/process.ts';
import { password } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const file = 'Llama-3.2-3B-Instruct-Q4_K_M.gguf';
const bytes = randomGguf(400_000);
const children: ChildProcess[] = [];

describe('pulls of weights', () => {
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await stopOwnPostgres();
  });

  interface Started {
    child: ChildProcess;
    url: string;
    setupLink: string | undefined;
  }

  async function serve(
    dataDir: string,
    hubUrl: string,
    databaseUrl: string | null,
  ): Promise<Started> {
    const child = spawn(process.execPath, ['src/main.js', 'serve', '--port', '0'], {
      env: {
        PATH: process.env.PATH,
        MILLRACE_DATA_DIR: dataDir,
        MILLRACE_HUB_URL: hubUrl,
        MILLRACE_LOG_LEVEL: 'silent',
        ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl }),
      },
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
    return {
      child,
      url,
      setupLink: printed.includes('Set-up link')
        ? readFirstSecret(printed, 'Set-up link')
        : undefined,
    };
  }

  describe('a server that is killed', { concurrency: true }, () => {
    for (const database of databases) {
      it(`resumes its pull after the next start and fetches nothing twice, on ${database}`, async () => {
        const hub = await startHub();
        hub.add(repo, { [file]: bytes });
        hub.pauseAfter(150_000);
        const dataDir = await mkdtemp(join(tmpdir(), 'millrace-restart-'));
        const { url: databaseUrl, drop } = await createDatabase(database);
        const first = await serve(dataDir, hub.url, databaseUrl);
        const joined = await post(first.url, '/dashboard/api/join', {
          token: first.setupLink?.split('/').at(-1),
          email: 'owner@example.com',
          password,
        });
        const cookie = joined.headers.getSetCookie()[0]?.split(';')[0] ?? '';
        const asked = await post(
          first.url,
          '/dashboard/api/weights/pulls',
          { model: 'llama3.2-3b-instruct' },
          cookie,
        );
        const { id } = (await asked.json()) as { id: string };
        const target = join(dataDir, 'models', repo.replace('/', '--'), file);
        await until('the first bytes are on disk', async () => {
          const part = await stat(`${target}.part`).catch(() => null);
          return part?.size === 150_000;
        });
        first.child.kill('SIGKILL');
        await once(first.child, 'exit');
        await until('the hub has noticed', () => hub.sending() === 0);
        hub.release();

        const second = await serve(dataDir, hub.url, databaseUrl);
        const state = await until('the pull ends', async () => {
          const response = await fetch(`${second.url}/dashboard/api/weights/pulls/${id}`, {
            headers: { cookie },
          });
          const pull = (await response.json()) as { state: string };
          return pull.state === 'running' || pull.state === 'queued' ? undefined : pull.state;
        });
        assert.equal(state, 'done');
        assert.deepEqual(await readFile(target), bytes);
        assert.equal(hub.seen.at(-1)?.range, 'bytes=150000-');
        assert.equal(hub.bytesSent(), bytes.length);
        second.child.kill('SIGTERM');
        await once(second.child, 'exit');
        await drop();
        await rm(dataDir, { recursive: true, force: true });
      });
    }
  });

  async function post(url: string, path: string, body: object, cookie = ''): Promise<Response> {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    });
    assert(response.ok, `${path} answered ${response.status}`);
    return response;
  }
});
