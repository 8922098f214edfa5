// Batches of every endpoint that has them: results are in the format of the endpoint, and billed under its name.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type OpenAI from 'openai';
import type { UsageRequestPage } from '#accounts/usage/schema.ts';
import { findEndpoint } from '#inference/apis/apis.ts';
import { serveLine } from '#inference/apis/batches/serve-line.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { createBatch, readResults, toClient, toText, untilEnded } from '#test/support/batches.ts';
import { createHandClock } from '#test/support/clock.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'mill';
const messages = [{ role: 'user', content: 'Go' }];
const said = 'The wheel türnt';

interface Case {
  endpoint: string;
  operation: string;
  body: object;
  /** Changes of the body that make the line invalid, and what the batch says about it. */
  wrong: [change: object, code: string, param: string];
  /** What a result says. */
  read(body: never): unknown;
  expected: unknown;
}

const cases: Case[] = [
  {
    endpoint: '/v1/chat/completions',
    operation: 'batch_chat',
    body: { messages },
    wrong: [{ n: 0 }, 'integer_below_min_value', 'body.n'],
    read: ({ choices }: OpenAI.ChatCompletion) => choices[0]?.message.content,
    expected: said,
  },
  {
    endpoint: '/v1/completions',
    operation: 'batch_text_completion',
    body: { prompt: 'Go', max_tokens: 9 },
    wrong: [{ prompt: 5 }, 'invalid_type', 'body.prompt'],
    read: ({ choices }: OpenAI.Completion) => choices[0]?.text,
    expected: said,
  },
  {
    endpoint: '/v1/responses',
    operation: 'batch_responses',
    body: { input: 'Go' },
    wrong: [{ background: true }, 'invalid_value', 'body.background'],
    read: ({ output }: OpenAI.Responses.Response) =>
      output.flatMap((item) => (item.type === 'message' ? item.content : null))[0],
    expected: { type: 'output_text', text: said, annotations: [], logprobs: [] },
  },
  {
    endpoint: '/v1/messages',
    operation: 'batch_messages',
    body: { messages, max_tokens: 9 },
    wrong: [{ max_tokens: null }, 'invalid_type', 'body'],
    read: ({ content }: { content: unknown }) => content,
    expected: [{ type: 'text', text: said }],
  },
  {
    endpoint: '/v1/embeddings',
    operation: 'batch_embeddings',
    body: { input: ['Go', 'on'], encoding_format: 'float' },
    wrong: [{ input: [] }, 'array_below_min_length', 'body.input'],
    read: ({ data }: OpenAI.CreateEmbeddingResponse) =>
      data.map(({ embedding }) => embedding.length),
    expected: [8, 8],
  },
];

describe('a batch', () => {
  let server: TestServer;
  let owner: SessionFetch;
  let upstream: ScriptedUpstream;
  let client: OpenAI;
  before(async () => {
    upstream = await startScriptedUpstream({ words: 3 });
    const backends = [{ name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' }];
    const catalog = { [model]: { backends, price: { input: 1000, output: 1000 } } };
    server = await startTestServer({
      config: { models: { catalog, health: { probe_seconds: 3600 } } as object },
    });
    owner = await server.join();
    client = toClient(server);
  });
  after(async () => {
    await server.stop();
    await upstream.close();
  });

  const toLine = (url: string, id: string, body: object) => ({
    custom_id: id,
    method: 'POST',
    url,
    body: { model, ...body },
  });
  const run = async (endpoint: string, lines: readonly object[]) =>
    untilEnded(client, (await createBatch(client, toText(lines), { endpoint })).id);

  for (const { endpoint, operation, body, wrong, read, expected } of cases) {
    test(`of ${endpoint} has its results, at half the price`, async () => {
      const lines = ['a', 'b'].map((id) => toLine(endpoint, id, body));
      const batch = await run(endpoint, lines);
      assert.deepEqual(batch.request_counts, { total: 2, completed: 2, failed: 0 });
      const results = await readResults(client, batch.output_file_id);
      for (const { response } of results) {
        assert.equal(response?.status_code, 200);
        assert.deepEqual(read(response?.body as never), expected);
      }
      const page = await owner('/dashboard/api/usage/requests?limit=10');
      const { data } = (await page.json()) as UsageRequestPage;
      const ids = results.map(({ response }) => response?.request_id);
      const rows = data.filter(({ id }) => ids.includes(id));
      assert.equal(rows.length, 2);
      for (const row of rows) {
        assert.equal(row.operation, operation);
        assert.equal(row.cost, (row.prompt_tokens + row.completion_tokens) / 2000);
      }
    });

    test(`of ${endpoint} names the line that is invalid, and runs none`, async () => {
      const [change, code, param] = wrong;
      const known = upstream.requests.length;
      const lines = [body, { ...body, ...change }].map((one, at) =>
        toLine(endpoint, `line-${at}`, one),
      );
      const { status, errors } = await run(endpoint, lines);
      assert.equal(status, 'failed');
      const told = errors?.data?.map((error) => [error.line, error.code, error.param]);
      assert.deepEqual(told, [[2, code, param]], JSON.stringify(errors));
      assert.equal(upstream.requests.length, known);
    });
  }

  test('stores its responses, which later requests can continue', async () => {
    const line = toLine('/v1/responses', 'a', { input: 'Go' });
    const { output_file_id } = await run('/v1/responses', [line]);
    const [result] = await readResults(client, output_file_id);
    const id = result?.response?.body.id ?? '';
    assert.equal((await client.responses.retrieve(id)).output_text, said);
    const next = await client.responses.create({ model, input: 'On', previous_response_id: id });
    assert.equal(next.status, 'completed');
    assert.match(JSON.stringify(upstream.requests.at(-1)?.body.messages), /türnt/);
  });

  test('of another endpoint is refused', async () => {
    for (const endpoint of ['/v1/rerank', '/tokenize', '/api/chat', '/v1/messages/count_tokens']) {
      await assert.rejects(createBatch(client, '{}', { endpoint }), { status: 400 }, endpoint);
    }
  });
});

test('a line of messages is tried again as long as its model is overloaded', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const statuses = [529, 529, 529, 529, 200];
  const signal = new AbortController().signal;
  const line = { custom_id: 'a', method: 'POST', url: '/v1/messages', body: {} };
  const parts = {
    serve: async ({ delivery }: { delivery: { send(...sent: unknown[]): void } }) =>
      delivery.send(statuses.shift() ?? 0, ['retry-after-ms', '1000'], {}),
    prepare: async () => ({ task: { kind: 'chat', body: { model, messages } }, format: {} }),
    slots: { acquire: async () => {}, release() {} },
    clock: createHandClock(0),
    priceFactor: 1,
    maxValues: 100,
  };
  const served = serveLine(
    parts as never,
    { batch: { id: 'batch_1' } as never, endpoint: findEndpoint('/v1/messages') as never },
    { bytes: Buffer.from(JSON.stringify(line)), offset: 0, end: 1 } as never,
    { run: signal, wait: signal },
  );
  let isDone = false;
  served.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    t.mock.timers.tick(1000);
    await new Promise(setImmediate);
  }
  assert.equal((await served).result.isError, false);
  assert.deepEqual(statuses, []);
});
