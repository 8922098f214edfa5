// Deployments of several servers on one database: every server answers for all of them, and another takes over those on
// machines when theirs is lost. Scripted machines answer with their id.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Client } from 'pg';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { noPostgres } from '#test/support/databases.ts';
import { makeWeights, testEngine } from '#test/support/deployments.ts';
import { findFreePort } from '#test/support/free-port.ts';
import { listen } from '#test/support/listen.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const config = { secret_key: Buffer.alloc(32, 7).toString('base64') };
/** Of all servers here, so that none seems lost to another. */
const clock = createRunningClock();

interface Server {
  readonly server: TestServer;
  readonly owner: SessionFetch;
}

async function toAddress() {
  const port = await findFreePort();
  return { port, peer_url: `http://127.0.0.1:${port}` };
}

const startFirst = async (given: object = {}, deployments: object = {}): Promise<Server> => {
  const server = await startTestServer({
    database: 'postgres',
    clock,
    config: { ...config, server: { ...(await toAddress()), ...given }, deployments },
  });
  return { server, owner: await server.join() };
};

/** Another server on the same database, with a host of its own unless its settings say otherwise. */
async function startAnother(first: Server, given: object = {}): Promise<Server> {
  const { databaseUrl, key } = first.server;
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-server-'));
  const on = { dataDir, databaseUrl };
  const server = await startTestServer({
    ...{ on, clock, presetApiKey: key },
    config: { ...config, server: await toAddress(), ...given },
  });
  return { server, owner: server.withCookie(first.owner.cookie) };
}

async function call<Data = DeploymentView>(
  { server, owner }: Server,
  method: string,
  path: string,
  json?: unknown,
): Promise<Data> {
  const response = await owner(`/api/v1${path}`, {
    method,
    headers: { origin: server.url },
    ...(json === undefined ? {} : { json }),
  });
  return ((await response.json()) as { data: Data }).data;
}

/** Lets the first server seem lost until another runs its deployment. */
async function forget({ server }: Server): Promise<void> {
  const db = new Client({ connectionString: server.databaseUrl ?? '' });
  await db.connect();
  const id = readFileSync(join(server.dataDir, 'host-id'), 'utf8').trim();
  await clock.until('another server takes over', async () => {
    await db.query('update servers set seen_at = 0 where id = $1', [id]);
    const { rowCount } = await db.query('select 1 from deployments where runner_id != $1', [id]);
    return rowCount === 1;
  });
  await db.end();
}

/** The engine for tests as a program that vLLM's arguments can be added to. */
function writeProgram(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'millrace-engine-')), 'vllm');
  const command = [testEngine.program, ...testEngine.args].map((part) => `'${part}'`).join(' ');
  writeFileSync(path, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o700 });
  return path;
}

const deploy = (server: Server, runsOn: string) =>
  call(server, 'POST', '/deployments', {
    ...{ name: 'tested', model, engine: 'command', program: 'engine', runs_on: runsOn },
  });
const show = (server: Server) => call(server, 'GET', '/deployments/tested');
const instances = (server: Server) =>
  call<{ id: string; status: string }[]>(server, 'GET', '/instances');
const readLog = async (server: Server) =>
  (await call<{ lines: string[] }>(server, 'GET', '/deployments/tested/log')).lines;
const measure = (server: Server) =>
  call<ReplicaStats[]>(server, 'GET', '/deployments/tested/stats');
const chat = ({ server }: Server, given: object = {}, init: RequestInit = {}) =>
  server.fetch('/v1/chat/completions', {
    ...init,
    json: { model, messages: [{ role: 'user', content: 'Hi' }], ...given },
  });

describe('deployments of several servers', {
  skip: noPostgres,
}, () => {
  test('another server runs the deployment of one that was stopped', async () => {
    const first = await startFirst();
    await deploy(first, 'cpu_1x_general');
    assert.equal((await clock.through(chat(first))).status, 200);
    const second = await startAnother(first);
    await first.server.stop();
    await clock.until('it is taken over', async () => {
      const response = await clock.through(chat(second));
      await response.arrayBuffer();
      return /^tested-/.test(response.headers.get('x-served-by') ?? '');
    });
    const { status, replicas } = await show(second);
    assert.deepEqual([status, replicas.length], ['ready', 1]);
  });

  test('a server that only seemed lost leaves the deployment to the other', async () => {
    const first = await startFirst();
    await deploy(first, 'cpu_1x_general');
    assert.equal((await clock.through(chat(first))).status, 200);
    const [machine] = await instances(first);
    const second = await startAnother(first);
    await forget(first);
    const running = async () =>
      (await instances(second)).filter(({ status }) => status !== 'terminating');
    const servedBy = async (server: Server) => (await chat(server)).headers.get('x-served-by');
    const next = await clock.until('the other runs it on a machine of its own', async () => {
      const [one, ...rest] = await running();
      const name = `tested-${one?.id.slice(0, 8)}`;
      const isNext = one?.id !== machine?.id && rest.length === 0;
      return isNext && (await servedBy(second)) === name ? name : undefined;
    });
    await clock.until(
      'its server sends requests there',
      async () => (await servedBy(first)) === next,
    );
    await clock.until('every server shows it', async () => (await show(first)).replicas[0]);
    assert.equal((await running()).length, 1);
  });

  test('a type that only the host of another server offers is refused', async () => {
    const second = await startAnother(await startFirst(), { cloud: { driver: 'none' } });
    await deploy(second, 'cpu_1x_general');
    assert.equal((await clock.through(chat(second))).status, 503);
    const { reason } = await show(second);
    assert.match(reason ?? '', /No host that this server reaches offers cpu_1x_general\.$/);
  });

  test('requests are refused if the server of the deployment does not answer as this version does', async (t) => {
    const other = createServer((_request, response) => response.end('{"is_ready":true}'));
    await refusesRequests(`http://127.0.0.1:${await listen(t, other)}`);
  });

  test('requests are refused if the server of the deployment does not answer at its peer_url', async () => {
    await refusesRequests(`http://127.0.0.1:${await findFreePort()}`);
  });

  async function refusesRequests(peerUrl: string): Promise<void> {
    const first = await startFirst({ peer_url: peerUrl });
    await deploy(first, 'cpu_1x_general');
    const second = await startAnother(first);
    const refused = await clock.through(chat(second));
    assert.equal(refused.status, 503);
    assert.match(await refused.text(), /The server of the deployment tested does not answer/);
  }

  test('a deployment of another server’s file is removed there alone, and refuses requests once that server is lost', async () => {
    const onMachine = { model, engine: 'command', program: 'engine', runs_on: 'cpu_1x_general' };
    const first = await startFirst({}, { tested: onMachine });
    const second = await startAnother(first, { cloud: { driver: 'none' } });
    const headers = { origin: second.server.url };
    const send = (method: string, json?: object) =>
      second.owner('/api/v1/deployments/tested', { method, headers, ...(json && { json }) });
    for (const response of [await send('DELETE'), await send('POST', { max: 2 })]) {
      assert.equal(response.status, 409);
      const message = `configuration file of the server ${first.server.url}. Change`;
      assert((await response.text()).includes(message));
    }
    await first.server.stop();
    const refused = await clock.until('requests are refused', async () => {
      const response = await clock.through(chat(second));
      return response.status === 503 ? response : undefined;
    });
    assert.match(await refused.text(), /tested is lost, and no other one has machines of the type/);
    assert.equal((await send('DELETE')).status, 200);
  });

  test('rows of servers that were lost or stopped long ago are deleted', async () => {
    const { server } = await startFirst();
    const db = new Client({ connectionString: server.databaseUrl ?? '' });
    await db.connect();
    const [now, day] = [Date.now(), 86_400_000];
    for (const [id, seenAt] of [
      ['stopped-before', -(now - 31 * day)],
      ['lost-before', now - 31 * day],
      ['stopped-lately', -(now - 29 * day)],
      ['stopped-by-an-older-version', 0],
    ])
      await db.query('insert into servers (id, seen_at) values ($1, $2)', [id, seenAt]);
    await clock.until('they are deleted', async () => {
      const { rows } = await db.query<{ id: string }>("select id from servers where id like '%-%'");
      return isDeepStrictEqual(rows, [{ id: 'stopped-lately' }]);
    });
    await db.end();
  });

  describe('engines beside a server', () => {
    let first: Server;
    let second: Server;
    /** While this file does not exist, streams stop before their last token. */
    const lastFile = join(mkdtempSync(join(tmpdir(), 'millrace-file-')), 'last');
    before(async () => {
      first = await startFirst();
      writeFileSync(lastFile, '');
      const env = { LOAD_MS: '500', TOKENS: '20', WINDOW: '4000', LAST_FILE: lastFile };
      const vllm = { engine: 'vllm', program: writeProgram(), args: [], source: makeWeights() };
      await call(first, 'POST', '/deployments', { name: 'tested', model, ...vllm, env });
      second = await startAnother(first);
    });

    test('answer requests of other servers, which wait there for the start', async () => {
      const response = await clock.through(chat(second));
      assert.equal(response.status, 200, await response.clone().text());
      assert.match(response.headers.get('x-served-by') ?? '', /^tested-/);
      assert(Number(response.headers.get('x-cold-start-ms')) > 0);
      assert.match(await response.text(), /1 2 3/);
      const again = await clock.through(chat(second));
      assert.deepEqual([again.status, again.headers.get('x-cold-start-ms')], [200, null]);
    });

    test('stream to other servers', async () => {
      const response = await chat(second, { stream: true });
      const text = await response.text();
      assert.equal(text.match(/"content":/g)?.length, 20, text);
    });

    test('are shown by every server', async () => {
      await clock.until('they show the same', async () => {
        const { replicas } = await show(first);
        return replicas.length === 1 && isDeepStrictEqual((await show(second)).replicas, replicas);
      });
      assert.deepEqual(await readLog(second), await readLog(first));
    });

    test('are sent no more by other servers than their context window takes', async () => {
      const refusal = await clock.until('the other server knows the window', async () => {
        const response = await chat(second, { max_tokens: 5_000 });
        return response.status === 200 ? undefined : response;
      });
      assert.equal(refusal.status, 400);
      assert.match(await refusal.text(), /4000 tokens.*"context_length_exceeded"/);
    });

    test('are measured by their own server for every server', async () => {
      const { replicas } = await show(first);
      const [stats, ...others] = await measure(second);
      assert.deepEqual([stats?.id, others], [replicas[0]?.id, []]);
      assert(stats && 'value' in stats.memory_bytes && stats.memory_bytes.value > 2 ** 20);
    });

    test('are changed by every server', async () => {
      const changed = await call(second, 'POST', '/deployments/tested', { hold_requests: 50 });
      assert.deepEqual([changed.hold_requests, changed.replicas.length], [50, 1]);
    });

    test('are started again after failures by every server', async () => {
      const file = join(mkdtempSync(join(tmpdir(), 'millrace-file-')), 'file');
      const script = `[ -e ${file} ] && exec '${testEngine.program}' '${testEngine.args}'`;
      const shell = { engine: 'command', program: '/bin/sh', args: ['-c', script] };
      const failing = { name: 'failing', model: 'llama3.1-8b-instruct', min: 1, ...shell };
      await call(first, 'POST', '/deployments', failing);
      const status = async () => (await call(first, 'GET', '/deployments/failing')).status;
      await clock.until('it has failed', async () => (await status()) === 'failed');
      writeFileSync(file, '');
      await call(second, 'POST', '/deployments/failing/start');
      await clock.until('it is ready', async () => (await status()) === 'ready');
    });

    test('are reached by servers of the same database alone', async () => {
      const { id } = await show(first);
      for (const [method, path] of [
        ['POST', 'demand'],
        ['POST', 'forgive'],
        ['POST', 'replicas/x/v1/chat/completions'],
        ['POST', 'replicas/x/tokenize'],
        ['GET', 'log'],
        ['GET', 'stats'],
      ]) {
        const url = `/peer/v1/deployments/${id}/${path}`;
        const json = method === 'POST' ? { server: 'x', waiting: 1 } : undefined;
        assert.equal((await first.server.fetch(url, { json })).status, 401, url);
      }
    });

    test('count tokens for other servers', async () => {
      const response = await second.server.fetch('/v1/tokenize', { json: { model, prompt: 'Hi' } });
      const { tokens } = (await response.json()) as { tokens: number[] };
      assert.match(response.headers.get('x-served-by') ?? '', /^tested-/);
      assert.deepEqual(tokens, [7, 8, 9]);
    });

    test('embed texts for other servers', async () => {
      const response = await second.server.fetch('/v1/embeddings', {
        json: { model, input: 'Hi' },
      });
      const { data } = (await response.json()) as { data: { embedding: number[] }[] };
      assert.deepEqual(data[0]?.embedding, [0.5]);
    });

    test('end a request of another server whose client leaves', async () => {
      rmSync(lastFile);
      const client = new AbortController();
      await chat(second, { stream: true }, { signal: client.signal });
      client.abort();
      await clock.until('it has ended', async () =>
        (await readLog(first)).includes('a client left'),
      );
      await clock.until('nothing runs', async () => (await show(first)).running === 0);
    });

    /** Kills the newest engine. */
    const kill = async () => {
      const [, pid] = /^process (\d+)$/m.exec((await readLog(first)).join('\n')) ?? [];
      process.kill(Number(pid), 'SIGKILL');
    };

    test('that die in a stream of another server are replaced, and the next one continues it', async () => {
      const response = await chat(second, { stream: true });
      await kill();
      writeFileSync(lastFile, '');
      const text = await response.text();
      assert.match(text, /\[DONE\]/);
      assert.doesNotMatch(text, /"error"/);
    });

    test('that have just died keep requests of another server waiting for the next one', async () => {
      await clock.until('it is ready', async () => (await show(first)).status === 'ready');
      const before = await clock.through(chat(second));
      await kill();
      const after = await clock.through(chat(second));
      assert.deepEqual([before.status, after.status], [200, 200], await after.clone().text());
      const names = [before, after].map(({ headers }) => headers.get('x-served-by'));
      assert.notEqual(names[0], names[1]);
      assert(Number(after.headers.get('x-cold-start-ms')) > 0);
    });

    test('answer one conversation by one replica, whichever server it reaches', async () => {
      await call(first, 'POST', '/deployments/tested', { min: 3, max: 3 });
      const names = async (server: Server, content: string) => {
        const messages = [{ role: 'user', content }];
        return (await chat(server, { messages })).headers.get('x-served-by') ?? '';
      };
      // So many that each replica gets one, whatever its name is.
      const contents = Array.from({ length: 40 }, (_, at) => `Conversation ${at}`);
      await clock.until('both servers use all three', async () => {
        const [here, there] = await Promise.all(
          [first, second].map((server) =>
            Promise.all(contents.map((content) => names(server, content))),
          ),
        );
        return new Set(here).size === 3 && new Set(there).size === 3;
      });
      for (const content of contents)
        assert.equal(await names(second, content), await names(first, content));
    });

    test('are not started elsewhere when their server has gone', async () => {
      await first.server.stop();
      const codeOf = async () => {
        const answer = await chat(second);
        return ((await answer.json()) as { error: { code: string } }).error.code;
      };
      await clock.until('none is left', async () => (await codeOf()) === 'no_backend');
    });
  });
});
