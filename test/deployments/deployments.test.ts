// Deployments through HTTP, with real processes as engines.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, before, describe, test } from 'node:test';
import type { DeploymentLog, DeploymentView } from '#deployments/ground/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { databases } from '#test/support/databases.ts';
import { makeFolder } from '#test/support/process.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const engine = join(import.meta.dirname, '../support/deployed-engine.ts');
const model = 'hermes3-8b';

for (const database of databases) {
  describe(`deployments on ${database}`, () => {
    let server: TestServer;
    let owner: SessionFetch;
    const clock = createRunningClock();
    before(async () => {
      server = await startTestServer({ database, clock });
      owner = await server.join();
    });

    async function call(method: string, path: string, json?: unknown) {
      const response = await owner(`/api/v1/deployments${path}`, {
        method,
        headers: { origin: server.url },
        ...(json === undefined ? {} : { json }),
      });
      const body = (await response.json()) as { data: DeploymentView; error?: { message: string } };
      return { status: response.status, ...body };
    }
    const create = (given: object) =>
      call('POST', '', {
        name: 'tested',
        model,
        engine: 'command',
        program: process.execPath,
        args: [engine],
        ...given,
      });
    const show = async () => (await call('GET', '/tested')).data;
    afterEach(async () => {
      await call('DELETE', '/tested');
      const folder = join(server.dataDir, 'replicas');
      await clock.until(
        'all replicas are gone',
        () => !existsSync(folder) || readdirSync(folder).length === 0,
      );
    });
    const chat = (given: object = {}) =>
      server.fetch('/v1/chat/completions', {
        json: { model, messages: [{ role: 'user', content: 'Hi' }], ...given },
      });
    const contentOf = async (response: Response) => {
      const { choices } = (await response.json()) as {
        choices: { message: { content: string } }[];
      };
      return choices[0]?.message.content;
    };

    test('waiting requests share one start, and an idle deployment stops', async () => {
      const { status, data } = await create({
        env: { LOAD_MS: '300', SECRET: 'hidden' },
        ladder: { gone: 1 },
      });
      assert.equal(status, 200);
      assert.deepEqual([data.status, data.replicas, data.env], ['idle', [], ['LOAD_MS', 'SECRET']]);
      const responses = await Promise.all([chat(), chat(), chat()]);
      for (const response of responses) {
        assert.equal(response.status, 200);
        assert.match(response.headers.get('x-served-by') ?? '', /^tested-/);
        assert(Number(response.headers.get('x-cold-start-ms')) > 0);
        assert.equal(await contentOf(response), '1 1 2');
      }
      assert.equal(new Set(responses.map(({ headers }) => headers.get('x-served-by'))).size, 1);
      assert.equal((await show()).status, 'ready');
      const warm = await chat();
      assert.equal(warm.headers.get('x-cold-start-ms'), null);
      await clock.until('it is idle again', async () => (await show()).status === 'idle');
      assert.equal((await chat()).status, 200);
    });

    test('a held stream opens at once and is kept alive', async () => {
      await create({ env: { LOAD_MS: '500' } });
      const response = await chat({ stream: true });
      assert.equal(response.status, 200);
      assert.equal((await show()).status, 'starting');
      const text = await response.text();
      assert.match(text, /"content":" 2"/);
      assert.match(text, /\[DONE\]/);
    });

    test('after three failed starts, requests get the reason, and nothing is started', async () => {
      await create({ env: { FAIL: 'torch.OutOfMemoryError: CUDA out of memory' } });
      const response = await clock.through(chat());
      assert.equal(response.status, 503);
      const { error } = (await response.json()) as { error: { message: string } };
      assert.match(error.message, /The deployment tested failed\. There is too little memory/);
      const { status, reason, replicas } = await show();
      assert.deepEqual([status, replicas], ['failed', []]);
      assert.match(reason ?? '', /too little memory/);
      const log = (await call('GET', '/tested/log')) as unknown as { data: { lines: string[] } };
      assert.match(log.data.lines.join('\n'), /CUDA out of memory/);
      // New settings are a new chance.
      await call('POST', '/tested', { env: {} });
      assert.equal((await chat()).status, 200);
    });

    test('an update takes over when it is ready, and is rolled back by one call', async () => {
      await create({ min: 1, env: { VERSION: 'old' } });
      await clock.until('it is ready', async () => (await show()).status === 'ready');
      await call('POST', '/tested', { env: { VERSION: 'new', LOAD_MS: '300' } });
      assert.equal(await contentOf(await chat()), 'old 1 2');
      await clock.until('the new revision has taken over', async () => {
        const { replicas } = await show();
        return replicas.length === 1 && replicas[0]?.revision === 2;
      });
      assert.equal(await contentOf(await chat()), 'new 1 2');
      await call('POST', '/tested/rollback');
      await clock.until(
        'the old settings serve again',
        async () => (await contentOf(await chat())) === 'old 1 2',
      );
    });

    test('a broken update leaves the old revision in service', async () => {
      await create({ min: 1, env: { VERSION: 'old' } });
      await clock.until('it is ready', async () => (await show()).status === 'ready');
      await call('POST', '/tested', { env: { FAIL: 'No such file' } });
      await clock.until('it gave up', async () => /exit code 1/.test((await show()).reason ?? ''));
      assert.equal(await contentOf(await chat()), 'old 1 2');
      await clock.until('the log says why', async () => {
        const { lines } = (await call('GET', '/tested/log')).data as unknown as DeploymentLog;
        return lines.join() === 'No such file';
      });
    });

    test('a running stream ends before its replica is stopped', async () => {
      await create({ env: { TOKEN_MS: '50', TOKENS: '20' } });
      const response = await chat({ stream: true });
      const reader = response.body!.getReader();
      await reader.read();
      await clock.until('it runs', async () => (await show()).running === 1);
      assert.equal((await call('POST', '/tested/stop')).status, 200);
      assert.equal((await chat()).status, 503);
      let text = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += Buffer.from(value).toString();
      }
      assert.match(text, /"content":" 19"/);
      await clock.until('it is stopped', async () => (await show()).replicas.length === 0);
      await call('POST', '/tested/start');
      assert.equal((await chat()).status, 200);
    });

    test('a request that waits for a removed deployment is refused, not answered by another model', async () => {
      await create({ env: { LOAD_MS: '60000' } });
      const waiting = chat();
      await clock.until('it waits', async () => (await show()).waiting === 1);
      await call('DELETE', '/tested');
      const response = await waiting;
      assert.equal(response.status, 503);
      assert.match(await response.text(), /The deployment tested was removed/);
    });

    test('another maximum needs no new engine, and a stopped deployment stays stopped', async () => {
      await create({ min: 1 });
      await clock.until('it is ready', async () => (await show()).status === 'ready');
      const [before] = (await show()).replicas;
      await call('POST', '/tested', { max: 3 });
      const { revision, replicas } = await show();
      assert.deepEqual([revision, replicas[0]?.id], [1, before?.id]);
      await call('POST', '/tested/stop');
      await call('POST', '/tested', { max: 2 });
      await clock.until('it is stopped', async () => (await show()).status === 'stopped');
    });

    test('is ready while its only replica drains, and stopping until the last request has ended', async () => {
      const LAST_FILE = join(makeFolder(), 'last');
      await create({ env: { LAST_FILE } });
      const answer = await chat({ stream: true });
      const states = async () => (await show()).replicas.map(({ state }) => state);
      await clock.until('it runs', async () => (await show()).running === 1);
      await call('POST', '/tested/stop');
      await clock.until('it drains', async () => `${await states()}` === 'draining');
      assert.equal((await show()).status, 'stopping');
      await call('POST', '/tested/start');
      assert.equal((await show()).status, 'ready');
      await call('POST', '/tested/stop');
      writeFileSync(LAST_FILE, '');
      assert.match(await answer.text(), /\[DONE\]/);
      await clock.until('it is stopped', async () => (await show()).status === 'stopped');
      assert.deepEqual(await states(), []);
    });

    test('an engine that prints without end, forks and ignores SIGTERM harms nothing', async () => {
      const script = `trap '' TERM
        (trap '' TERM; while :; do sleep 1; done) &
        head -c 20000000 /dev/zero | tr '\\0' 'x'
        exec ${process.execPath} ${engine}`;
      await create({ program: '/bin/sh', args: ['-c', script] });
      assert.equal((await chat()).status, 200);
      const log = (await call('GET', '/tested/log')) as unknown as { data: { lines: string[] } };
      assert(log.data.lines.every((line) => line.length <= 2_000));
    });

    test('what contradicts itself is refused, and keys may only look', async () => {
      const refusals: [object, RegExp][] = [
        [{ min: 3, max: 2 }, /min is 3/],
        [{ program: null }, /needs a program/],
        [{ engine: 'llama-server', program: null }, /needs a source/],
        [{ ladder: { asleep: 60 } }, /The engine "command" can't sleep/],
        [{ engine: 'vllm', ladder: { asleep: 60 } }, /"vllm" sleeps only on machines/],
        [{ ladder: { stopped: 60 } }, /ladder\.stopped is for machines/],
        [
          { engine: 'sglang', ladder: { asleep: 600 } },
          /ladder\.gone is 600, which is not more than ladder\.asleep, 600/,
        ],
        [{ model: 'no-such-model' }, /no model "no-such-model"/],
      ];
      for (const [given, message] of refusals) {
        const { status, error } = await create(given);
        assert(status >= 400 && status < 500);
        assert.match(error?.message ?? '', message);
      }
      assert.equal((await server.fetch('/api/v1/deployments')).status, 200);
      const byKey = await server.fetch('/api/v1/deployments/tested', { method: 'DELETE' });
      assert.equal(byKey.status, 403);
    });
  });
}
