// Limits, budgets and usage rows on every endpoint: each API refuses in its own format, and says what was used.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Limits } from '#accounts/schema.ts';
import type { UsageRequest, UsageRequestPage } from '#accounts/usage/schema.ts';
import { countWords } from '#inference/engines/scripted/script.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { createBatch, readResults, toClient, toText, untilEnded } from '#test/support/batches.ts';
import { createHandClock } from '#test/support/clock.ts';
import { type KeyView, newKey } from '#test/support/limits/callers.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'mill';
const text = 'one two three';
const messages = [{ role: 'user', content: text }];
/** Dollars per million tokens, so that a token costs 0.001. */
const price = { input: 1000, output: 1000 };

interface Case {
  path: string;
  operation: string;
  body: object;
  /** Tokens that the scripted upstream counts; null if it depends on the translation, and 0 if nothing is billed. */
  tokens: number | null;
  /** False for requests that count tokens: they cost nothing, and have no usage rows. */
  isServed?: false;
}

const words = 5;
const spoken = countWords(messages) + words;
const cases: Case[] = [
  { path: '/v1/chat/completions', operation: 'chat', body: { messages }, tokens: spoken },
  {
    path: '/v1/completions',
    operation: 'text_completion',
    body: { prompt: text, max_tokens: 9 },
    tokens: countWords(text) + words,
  },
  { path: '/v1/responses', operation: 'responses', body: { input: text }, tokens: null },
  { path: '/v1/responses/compact', operation: 'responses', body: { input: text }, tokens: null },
  {
    path: '/v1/messages',
    operation: 'messages',
    body: { messages, max_tokens: 100 },
    tokens: spoken,
  },
  { path: '/v1/embeddings', operation: 'embeddings', body: { input: text }, tokens: 3 },
  {
    path: '/v1/rerank',
    operation: 'rerank',
    body: { query: 'two', documents: [text, 'four'] },
    tokens: 4 + 2,
  },
  { path: '/rerank', operation: 'rerank', body: { query: 'two', documents: [text] }, tokens: 4 },
  {
    path: '/api/chat',
    operation: 'ollama_chat',
    body: { messages, stream: false },
    tokens: spoken,
  },
  {
    path: '/api/generate',
    operation: 'ollama_generate',
    body: { prompt: text, stream: false },
    tokens: spoken,
  },
  { path: '/api/embed', operation: 'ollama_embed', body: { input: text }, tokens: 3 },
  { path: '/tokenize', operation: 'tokenize', body: { prompt: text }, tokens: 0 },
  { path: '/detokenize', operation: 'tokenize', body: { tokens: [1, 2] }, tokens: 0 },
  {
    path: '/v1/messages/count_tokens',
    operation: 'messages',
    body: { messages },
    tokens: 0,
    isServed: false,
  },
  {
    path: '/v1/responses/input_tokens',
    operation: 'responses',
    body: { input: text },
    tokens: 0,
    isServed: false,
  },
];

/** Throws if a refusal is not in the format of its API. */
function assertRefusal(path: string, body: unknown, code: string, requestId: string | null): void {
  const { error, ...rest } = body as { error: Record<string, unknown> | string };
  if (path.startsWith('/api/')) {
    assert.deepEqual(rest, {});
    assert(typeof error === 'string' && error.startsWith('This key'), JSON.stringify(body));
    return;
  }
  const { message, ...told } = error as Record<string, unknown>;
  assert.match(message as string, /^This key/);
  if (path.startsWith('/v1/messages')) {
    assert.deepEqual(rest, { type: 'error', request_id: requestId });
    assert.deepEqual(told, { type: 'rate_limit_error', details: { error_code: code } });
  } else {
    assert.deepEqual(rest, {});
    const type = code === 'insufficient_quota' ? code : 'requests';
    assert.deepEqual(told, { type, param: null, code });
  }
}

describe('limits on every endpoint', () => {
  let server: TestServer;
  let owner: SessionFetch;
  let quick: ScriptedUpstream;
  let endless: ScriptedUpstream;
  before(async () => {
    quick = await startScriptedUpstream({ words });
    endless = await startScriptedUpstream({ behaviour: 'never-ends' });
    const backend = ({ url }: ScriptedUpstream) => ({
      backends: [{ name: 'scripted', url, model: 'scripted', server: 'vllm' }],
    });
    const catalog = { [model]: { ...backend(quick), price }, slow: backend(endless) };
    server = await startTestServer({
      clock: createHandClock(),
      config: { models: { catalog, health: { probe_seconds: 3600 } } as object },
    });
    owner = await server.join();
  });
  after(async () => {
    await server.stop();
    await Promise.all([quick.close(), endless.close()]);
  });

  const send = ({ key }: KeyView, path: string, body: object, init: RequestInit = {}) =>
    server.fetch(path, {
      ...init,
      json: { model, ...body },
      headers: { authorization: `Bearer ${key}` },
    });

  async function refuse(key: KeyView, { path, body }: Case, code: string): Promise<Headers> {
    const response = await send(key, path, body);
    const answer = await response.json();
    assert.equal(response.status, 429, `${path}: ${JSON.stringify(answer)}`);
    assertRefusal(path, answer, code, response.headers.get('x-request-id'));
    return response.headers;
  }

  const rowsOf = async (key: KeyView): Promise<UsageRequest[]> =>
    (
      (await (
        await owner(`/dashboard/api/usage/requests?key=${key.id}`)
      ).json()) as UsageRequestPage
    ).data;

  const untilRows = (key: KeyView, count: number) =>
    until('the rows are written', async () => {
      const rows = await rowsOf(key);
      return rows.length >= count && rows.every(({ status }) => status !== 'running') ? rows : null;
    });

  const limited = (limits: Limits) => newKey(owner, limits);

  for (const one of cases) {
    const { path, operation, tokens, isServed = true } = one;
    test(`${path}: a rate lets one request through, whose usage is billed, and refuses the next`, async () => {
      const key = await limited({ requests_per_minute: 1 });
      const served = await send(key, path, one.body);
      assert.equal(served.status, 200, await served.text());
      const headers = await refuse(key, one, 'rate_limit_exceeded');
      assert(Number(headers.get('retry-after')) > 0);
      const rows = await untilRows(key, isServed ? 2 : 1);
      assert(rows.every((row) => row.operation === operation && row.model === model));
      const refused = rows.find(({ status }) => status === 'refused');
      assert.equal(refused?.code, 'rate_limit_exceeded');
      assert.equal(refused?.cost, 0);
      const done = rows.find(({ status }) => status === 'done');
      assert.equal(done !== undefined, isServed);
      if (done === undefined) return;
      const used = done.prompt_tokens + done.completion_tokens;
      if (tokens === null) assert(used > words);
      else assert.equal(used, tokens);
      assert.equal(done.cost, used / 1000);
    });
  }

  test('a spent budget refuses, and retrying is of no use', async () => {
    const key = await limited({ monthly_budget: 0.000_000_001 });
    const before = quick.requests.length;
    for (const one of cases.filter(({ isServed }) => isServed !== false)) {
      const headers = await refuse(key, one, 'insufficient_quota');
      assert.equal(headers.get('x-should-retry'), 'false', one.path);
    }
    assert.equal(quick.requests.length, before);
  });

  test('a request that runs takes the only place of its key on every endpoint', async () => {
    const key = await limited({ concurrent_requests: 1 });
    const leaving = new AbortController();
    const running = await send(
      key,
      '/v1/responses',
      { model: 'slow', input: text, stream: true },
      { signal: leaving.signal },
    );
    assert.equal(running.status, 200);
    for (const one of cases) await refuse(key, one, 'rate_limit_exceeded');
    leaving.abort();
    await running.text().catch(() => {});
    await until('the place is free', async () => {
      const { status } = await send(key, '/tokenize', { prompt: text });
      return status === 200;
    });
  });

  test('a batch’s line that its budget does not allow fails, in the format of its endpoint', async () => {
    const key = await limited({ monthly_budget: 0.000_000_001 });
    const client = toClient({ url: server.url, key: key.key });
    for (const path of ['/v1/messages', '/v1/embeddings', '/v1/responses']) {
      const body = { model, ...cases.find((one) => one.path === path)?.body };
      const line = { custom_id: 'a', method: 'POST', url: path, body };
      const { id } = await createBatch(client, toText([line]), { endpoint: path });
      const batch = await untilEnded(client, id);
      assert.deepEqual(batch.request_counts, { total: 1, completed: 0, failed: 1 }, path);
      const [failed] = await readResults(client, batch.error_file_id);
      assert.equal(failed?.response?.status_code, 429);
      assertRefusal(
        path,
        failed?.response?.body,
        'insufficient_quota',
        failed?.response?.request_id,
      );
    }
    const rows = await untilRows(key, 3);
    assert.deepEqual(rows.map(({ operation }) => operation).sort(), [
      'batch_embeddings',
      'batch_messages',
      'batch_responses',
    ]);
  });
});
