// Usage over HTTP, with the real built-in model: every way a request can end leaves its row,
// and the endpoints show it to its account only.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { before, describe, test } from 'node:test';
import type { UsageRequest, UsageRequestPage, UsageSummary } from '#accounts/usage/schema.ts';
import { openDatabase } from '#db/open.ts';
import { databases } from '#test/support/databases.ts';
import { needs } from '#test/support/programs.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';
import { assertAgreement } from '#test/support/usage/usage.ts';

interface Answer {
  usage: { prompt_tokens: number; completion_tokens: number };
}

const model = 'llama3.1-8b-instruct';
const messages = [{ role: 'user', content: 'What is the capital of France?' }];
const endless = { ignore_eos: true, max_tokens: 1900 };

for (const database of databases) {
  describe(`usage over HTTP on ${database}`, () => {
    let server: TestServer;
    let owner: SessionFetch;
    before(async () => {
      server = await startTestServer({ database });
      owner = await server.join();
    });

    const chat = (body: object = {}, init = {}, by: TestServer['fetch'] = server.fetch) =>
      by('/v1/chat/completions', { json: { model, messages, temperature: 0, ...body }, ...init });
    const read = async <Data>(path: string) =>
      (await (await owner(`/dashboard/api${path}`)).json()) as Data;
    const list = async (query = '') =>
      (await read<UsageRequestPage>(`/usage/requests?limit=500${query}`)).data;
    const rowOf = (id: string | null) =>
      until<UsageRequest | undefined>('the request has ended and is listed', async () =>
        (await list()).find((row) => row.id === id && row.status !== 'running'),
      );
    const idOf = (response: Response) => response.headers.get('x-request-id');

    test('the row of a plain request has its key, model, backend, tokens, times and cost', async () => {
      const response = await chat();
      const { usage } = (await response.json()) as Answer;
      const row = await rowOf(idOf(response));
      assert.deepEqual(
        [row.operation, row.model, row.served_model, row.backend, row.key_label, row.status],
        ['chat', model, model, 'builtin', 'first', 'done'],
      );
      assert.deepEqual(
        [row.prompt_tokens, row.completion_tokens, row.code],
        [usage.prompt_tokens, usage.completion_tokens, null],
      );
      assert(row.first_token_ms !== null && row.first_token_ms <= row.duration_ms);
      // The stand-in is not the model that has the price.
      assert.equal(row.cost, 0);
      assert(Math.abs(Date.parse(row.at) - Date.now()) < 60_000);
    });

    test('a stream and a text completion leave one row each', async () => {
      const streamed = await chat({ stream: true });
      await streamed.text();
      assert.equal((await rowOf(idOf(streamed))).status, 'done');
      const json = { model, prompt: 'Once', max_tokens: 3 };
      const completed = await server.fetch('/v1/completions', { json });
      const row = await rowOf(idOf(completed));
      assert.deepEqual([row.operation, row.completion_tokens], ['text_completion', 3]);
      const ids = (await list()).map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    });

    test('a session’s row has no key, and the requested and the served model', async () => {
      const content = 'river '.repeat(18_100);
      const long = { model: 'hermes3-405b', messages: [{ role: 'user', content }], max_tokens: 1 };
      const response = await chat(long, {}, owner);
      assert.equal(response.status, 200);
      const row = await rowOf(idOf(response));
      assert.deepEqual(
        [row.key_id, row.model, row.served_model],
        [null, 'hermes3-405b', 'hermes-3-llama-3.1-405b-fp8-128k'],
      );
    });

    for (const stream of [true, false]) {
      const kind = stream ? 'stream' : 'plain request';
      test(`a ${kind} whose client left is aborted, with what was generated`, async () => {
        const leaving = new AbortController();
        const before = new Set((await list()).map(({ id }) => id));
        const asked = chat({ ...endless, stream }, { signal: leaving.signal });
        asked.catch(() => {});
        const running = () =>
          until('its progress is listed while it runs', async () =>
            (await list('&status=running')).find(
              ({ id, completion_tokens }) => !before.has(id) && completion_tokens > 0,
            ),
          );
        const { id, completion_tokens: atLeast } = await running();
        leaving.abort();
        const row = await rowOf(id);
        assert.equal(row.status, 'aborted');
        assert(row.completion_tokens >= atLeast && row.completion_tokens < 1900);
        assert(row.cost === 0 && row.first_token_ms !== null);
        assert.deepEqual((await list('&status=aborted')).map((one) => one.id).includes(id), true);
      });
    }

    test('a refused request is failed, with the code of the response', async () => {
      const json = { model, prompt: 'x', suffix: 'y', max_tokens: 1 };
      const response = await server.fetch('/v1/completions', { json });
      assert.equal(response.status, 400);
      const row = await rowOf(idOf(response));
      assert.deepEqual([row.status, row.code, row.cost], ['failed', 'unsupported_parameter', 0]);
    });

    test('an engine that dies during a response leaves a failed row with what was generated', {
      skip: needs('ps'),
    }, async () => {
      const response = await chat({ ...endless, stream: true });
      const reader = response.body?.getReader();
      await reader?.read();
      const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], {
        encoding: 'utf8',
      });
      const pids = [...children.matchAll(/^\s*(\d+) .*local\/child\/main\.ts/gm)].map(
        ([, pid]) => pid,
      );
      assert(pids.length > 0, children);
      for (const pid of pids) process.kill(Number(pid), 'SIGKILL');
      while (!(await reader?.read())?.done);
      const row = await rowOf(idOf(response));
      assert.deepEqual([row.status, row.code], ['failed', 'upstream_error']);
      assert(row.completion_tokens > 0 && row.cost === 0);
    });

    test('a request for an unknown model leaves a refused row, whatever the name', async () => {
      for (const name of ['nothing', 'no\0thing', 'half \ud83d']) {
        const response = await chat({ model: name });
        assert.equal(response.status, 404);
        const row = await rowOf(idOf(response));
        const plain = name.replace('\0', '').toWellFormed();
        assert.deepEqual(
          [row.status, row.code, row.model, row.backend, row.cost],
          ['refused', 'model_not_found', plain, null, 0],
        );
      }
    });

    test('requests that a limit refuses leave rows, up to a maximum per minute', async () => {
      const limits = { requests_per_minute: 1 };
      const made = await owner('/dashboard/api/api-keys', { json: { label: 'slow', limits } });
      const { id, key } = (await made.json()) as { id: string; key: string };
      const headers = { authorization: `Bearer ${key}` };
      const responses = [];
      for (let count = 0; count < 251; count++)
        responses.push(await chat({ max_tokens: 1 }, { headers }));
      await Promise.all(responses.map((response) => response.text()));
      const [first, second] = responses;
      assert.deepEqual([first?.status, second?.status], [200, 429]);
      const row = await rowOf(idOf(second as Response));
      assert.deepEqual(
        [row.status, row.code, row.model, row.key_label, row.completion_tokens],
        ['refused', 'rate_limit_exceeded', model, 'slow', 0],
      );
      // A few more than a hundred: they come back with time.
      const { length } = await list(`&key=${id}&status=refused`);
      assert(length >= 100 && length <= 200, String(length));
      const { data } = (await (await owner('/dashboard/api/api-keys')).json()) as {
        data: { id: string; spend: { requests: number } }[];
      };
      assert.equal(data.find((one) => one.id === id)?.spend.requests, 1);
    });

    test('a body that is refused leaves a refused row, on every path', async () => {
      const long = 'x'.repeat(1000);
      const cases = [
        { json: { model, messages: [{ role: 'user', content: 'x' }], temperature: 'hot' }, model },
        { json: { model, messages: [{ role: 'user', content: 'x' }], top_logprobs: 1 }, model },
        { json: { model: long }, model: long.slice(0, 256) },
        { json: { model: 7 }, model: '' },
        { body: '{', model: '' },
      ];
      for (const { model: expected, ...given } of cases) {
        const body = given.body ?? JSON.stringify(given.json);
        // One that comes in chunks, without a length, takes the longer way.
        for (const sent of [body, new Blob([body]).stream()]) {
          const response = await server.fetch('/v1/chat/completions', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: sent,
            duplex: 'half',
          });
          assert.equal(response.status, 400);
          const { error } = (await response.json()) as { error: { code: string | null } };
          const row = await rowOf(idOf(response));
          assert.deepEqual(
            [row.status, row.code, row.model, row.operation, row.cost],
            ['refused', error.code ?? 'invalid_request_error', expected, 'chat', 0],
          );
        }
      }
    });

    test('a request without a caller leaves no row', async () => {
      const count = (await list()).length;
      const refused = await chat({}, { headers: { authorization: 'Bearer wrong' } });
      assert.equal(refused.status, 401);
      await (await chat({ max_tokens: 1 })).json();
      await until('the next request is listed', async () => (await list()).length === count + 1);
    });

    test('sums by model, key and backend agree with the rows', async () => {
      await until('nothing runs', async () => (await list('&status=running')).length === 0);
      const rows = await list();
      const total = (of: (row: UsageRequest) => number) =>
        rows.reduce((sum, row) => sum + of(row), 0);
      for (const by of ['none', 'model', 'key', 'backend']) {
        for (const step of ['hour', 'day']) {
          const summary = await read<UsageSummary>(`/usage?by=${by}&step=${step}`);
          const sum = (member: 'requests' | 'completion_tokens' | 'cost' | 'aborted' | 'errors') =>
            summary.data.reduce((before, bucket) => before + bucket[member], 0);
          assert.deepEqual([summary.by, summary.step], [by, step]);
          assert.deepEqual(
            [sum('requests'), sum('completion_tokens'), sum('aborted'), sum('errors')],
            [
              rows.length,
              total(({ completion_tokens }) => completion_tokens),
              total(({ status }) => Number(status === 'aborted')),
              total(({ status }) => Number(status === 'failed' || status === 'refused')),
            ],
          );
          assert(Math.abs(sum('cost') - total(({ cost }) => cost)) < 1e-9);
        }
      }
      const byKey = await read<UsageSummary>('/usage?by=key');
      assert.deepEqual([...new Set(byKey.data.map(({ label }) => label))].sort(), [
        'first',
        null,
        'slow',
      ]);
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      const counted = [
        ...metrics.matchAll(/gen_ai_server_request_duration_seconds_count\{.*\} (\d+)/g),
      ];
      assert.equal(
        counted.reduce((sum, [, count]) => sum + Number(count), 0),
        rows.filter(({ status }) => status !== 'refused').length,
        'metrics and rows disagree',
      );
      assert.match(metrics, /millrace_usage_dropped 0/);
    });

    test('a request without a key names the person who sent it', async () => {
      const row = await rowOf(idOf(await chat({ max_tokens: 1 }, {}, owner)));
      const { key_id, key_label, user_email } = row;
      assert.deepEqual([key_id, key_label, user_email], [null, null, 'owner@example.com']);
      const withKey = await rowOf(idOf(await chat({ max_tokens: 1 })));
      assert.deepEqual([withKey.key_label, withKey.user_email], ['first', null]);
    });

    test('a revoked key keeps its label', async () => {
      const made = await owner('/dashboard/api/api-keys', { json: { label: 'gone' } });
      const { id, key } = (await made.json()) as { id: string; key: string };
      const headers = { authorization: `Bearer ${key}` };
      const response = await chat({ max_tokens: 1 }, { headers });
      await owner(`/dashboard/api/api-keys/${id}`, { method: 'DELETE' });
      assert.equal((await rowOf(idOf(response))).key_label, 'gone');
      assert.equal((await list(`&key=${id}`)).length, 1);
      const { data } = await read<UsageSummary>('/usage?by=key');
      assert(data.some(({ label, group }) => label === 'gone' && group === id));
    });

    test('usage needs a session, and a viewer may read it', async () => {
      for (const path of ['/usage', '/usage/requests', '/usage.csv', '/usage/requests.csv']) {
        assert.equal((await server.fetch(`/dashboard/api${path}`)).status, 403);
        assert.equal((await fetch(`${server.url}/dashboard/api${path}`)).status, 401);
      }
      const invited = await owner('/dashboard/api/invitations', { json: { role: 'viewer' } });
      const { link } = (await invited.json()) as { link: string };
      const viewer = await server.joinBy(link, 'viewer@example.com');
      assert.equal((await viewer('/dashboard/api/usage')).status, 200);
    });

    test('a stop right after a response loses nothing, and rows, hours and months agree', async () => {
      const ids = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const response = await chat({ max_tokens: 2 });
          await response.text();
          return idOf(response);
        }),
      );
      const open = chat({ ...endless, stream: true });
      const opened = await open;
      await opened.body?.getReader().read();
      await server.stop();
      const db = await openDatabase({
        url: server.databaseUrl,
        poolSize: 1,
        dataDir: server.dataDir,
      });
      const rows = await db.selectFrom('usage_requests').selectAll().execute();
      await assertAgreement(db);
      await db.destroy();
      const byId = new Map(rows.map((row) => [row.id, row]));
      for (const id of ids) assert.equal(byId.get(id ?? '')?.status, 'done');
      const cut = byId.get(idOf(opened) ?? '');
      // Its connection and its engine end at one moment: which of them it hears of first is chance.
      assert.match(cut?.status ?? '', /^(aborted|failed)$/);
      assert((cut?.completion_tokens ?? 0) > 0);
      assert(!JSON.stringify(rows).includes('capital'), 'a prompt is in the database');
    });
  });
}
