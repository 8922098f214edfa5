// Stored and background responses through OpenAI's own package: on both databases, across servers and restarts.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { openExistingDatabase } from '#db/open.ts';
import { databases } from '#test/support/databases.ts';
import { gatewayModel as model, startGateway } from '#test/support/gateway.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';
import { readRows } from '#test/support/usage/usage.ts';

const toClient = (server: TestServer, apiKey = server.key) =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });

const openRows = ({ databaseUrl: url, dataDir }: TestServer) =>
  openExistingDatabase({ url, poolSize: 1, dataDir });

async function collect(stream: AsyncIterable<ResponseStreamEvent>) {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

const numbers = (events: ResponseStreamEvent[]) =>
  events.map(({ sequence_number }) => sequence_number);

for (const database of databases) {
  describe(`the Responses API on ${database}`, () => {
    test('a conversation continues on another server, and after a restart', async (t) => {
      const { server, upstreams } = await startGateway(t, {
        upstreams: [{ words: 3 }],
        server: { database },
      });
      const client = toClient(server);
      const first = await client.responses.create({
        model,
        input: 'one',
        instructions: 'Be brief.',
      });
      const config = { models: { catalog: { [model]: { backends: [] } } } };
      config.models.catalog[model] = {
        backends: [{ name: 'a', url: upstreams[0]?.url, model: 'scripted', server: 'vllm' }],
      } as never;
      const other = await startTestServer({ on: server, config });
      const second = await toClient(other, server.key).responses.create({
        model,
        input: 'two',
        previous_response_id: first.id,
      });
      await server.stop();
      const third = await collect(
        await toClient(other, server.key).responses.create({
          model,
          input: 'three',
          previous_response_id: second.id,
          stream: true,
        }),
      );
      assert.equal(third.at(-1)?.type, 'response.completed');
      const sent = upstreams[0]?.requests.at(-1)?.body as unknown as {
        messages: { role: string; content: string }[];
      };
      assert.deepEqual(
        sent.messages.map(({ role }) => role),
        ['user', 'assistant', 'user', 'assistant', 'user'],
        'the instructions of an earlier response are not carried over',
      );
      assert.equal(JSON.stringify(sent.messages.at(-1)).includes('three'), true);
      const api = toClient(other, server.key).responses;
      assert.equal((await api.retrieve(second.id)).output_text, second.output_text);
      const items = await api.inputItems.list(second.id);
      assert.equal(items.data.length, 1);
      await api.delete(second.id);
      await assert.rejects(api.retrieve(second.id), { status: 404 });
      await assert.rejects(api.inputItems.list(second.id), { status: 404 });
      await assert.rejects(api.create({ model, input: 'x', previous_response_id: second.id }), {
        status: 400,
        code: 'previous_response_not_found',
      });
      await other.stop();
    });

    test('store: false leaves nothing behind', async (t) => {
      const { server } = await startGateway(t, {
        upstreams: [{ words: 3 }],
        server: { database },
      });
      const api = toClient(server).responses;
      const whole = await api.create({ model, input: 'secret', store: false });
      await collect(await api.create({ model, input: 'secret', store: false, stream: true }));
      await assert.rejects(api.retrieve(whole.id), { status: 404 });
      const db = await openRows(server);
      for (const table of ['responses', 'response_items', 'response_events'] as const) {
        assert.deepEqual(await db.selectFrom(table).selectAll().execute(), [], table);
      }
      await db.destroy();
    });

    test('a background response runs alone, and its stream is resumed', async (t) => {
      const { server } = await startGateway(t, {
        upstreams: [{ words: 20, eventDelayMs: 10 }],
        server: { database },
      });
      const api = toClient(server).responses;
      const queued = await api.create({ model, input: 'go', background: true });
      assert.equal(queued.status, 'queued');
      const done = await until('it has completed', async () => {
        const response = await api.retrieve(queued.id);
        return response.status === 'completed' ? response : null;
      });
      assert.notEqual(done.output_text, '');
      assert.equal(done.usage?.output_tokens, 20);
      assert.equal(done.created_at, queued.created_at);
      const db = await openRows(server);
      const rows = await until('its usage is written', async () => {
        const all = await readRows(db);
        return all.every(({ status }) => status === 'done') && all.length > 0 ? all : null;
      });
      assert.equal(rows.length, 1);
      assert.equal(rows[0]?.operation, 'responses');
      assert.equal(rows[0]?.completion_tokens, 20);
      await db.destroy();

      const stream = await api.create({ model, input: 'go', background: true, stream: true });
      let id = '';
      for await (const event of stream) {
        if (event.type === 'response.created') id = event.response.id;
        if (event.type === 'response.output_text.delta') break;
      }
      const all = await collect(await api.retrieve(id, { stream: true }));
      assert.equal(all.at(-1)?.type, 'response.completed');
      assert.deepEqual(
        numbers(all),
        all.map((_, at) => at),
      );
      const rest = await collect(await api.retrieve(id, { stream: true, starting_after: 7 }));
      assert.deepEqual(rest, all.slice(8));
      const next = await api.create({ model, input: 'on', previous_response_id: id });
      assert.equal(next.previous_response_id, id);
    });

    test('a background response is cancelled, and billed for what was generated', async (t) => {
      const { server, upstreams } = await startGateway(t, {
        upstreams: [{ words: 100_000, eventDelayMs: 5 }],
        server: { database },
      });
      const api = toClient(server).responses;
      const { id } = await api.create({ model, input: 'go', background: true });
      await until('it runs', async () => upstreams[0]?.requests.length === 1);
      assert.equal((await api.cancel(id)).status, 'cancelled');
      assert.equal((await api.cancel(id)).status, 'cancelled');
      assert.equal((await api.retrieve(id)).status, 'cancelled');
      await until('the upstream is left', () => upstreams[0]?.requests[0]?.state === 'left');
      const whole = await api.create({ model, input: 'x', max_output_tokens: 16 });
      await assert.rejects(api.cancel(whole.id), { status: 400 });
      await assert.rejects(api.retrieve(whole.id, { stream: true }), { status: 400 });
      const refused = api.create({ model, input: 'x', background: true, store: false });
      await assert.rejects(refused, { status: 400, param: 'background' });
      const unknown = api.create({ model: 'none', input: 'x', background: true });
      await assert.rejects(unknown, { status: 404, code: 'model_not_found' });
    });

    test('limits refuse a background response when it arrives, and a revoked key ends one', async (t) => {
      const { server, upstreams } = await startGateway(t, {
        upstreams: [{ words: 100_000, eventDelayMs: 5 }],
        model: { price: { input: 1, output: 1 } },
        server: { database },
      });
      const owner = await server.join();
      const newKey = async (limits: object) => {
        const made = await owner('/dashboard/api/api-keys', { json: { label: 'k', limits } });
        return (await made.json()) as { id: string; key: string };
      };
      const start = (key: string) =>
        toClient(server, key).responses.create({ model, input: 'go', background: true });
      const slow = await newKey({ requests_per_minute: 1 });
      const { data, response } = await start(slow.key).withResponse();
      assert.equal(response.headers.get('x-ratelimit-remaining-requests'), '0');
      await assert.rejects(start(slow.key), { status: 429, code: 'rate_limit_exceeded' });
      const single = await newKey({ concurrent_requests: 1 });
      const { id } = await start(single.key);
      await assert.rejects(start(single.key), { status: 429, code: 'rate_limit_exceeded' });
      const broke = await newKey({ monthly_budget: 0.000_001 });
      await assert.rejects(start(broke.key), { status: 429, code: 'insufficient_quota' });
      // A short request defines many tools, which the prompt holds at length.
      const many = Array.from({ length: 100 }, (_, at) => ({ type: 'custom', name: `t${at}` }));
      const tools = [{ type: 'namespace', name: 'all', tools: many }] as never;
      const poor = await newKey({ monthly_budget: 0.012 });
      for (const background of [false, true]) {
        const request = { model, input: 'go', max_output_tokens: 1, tools, background };
        const refused = toClient(server, poor.key).responses.create(request);
        await assert.rejects(refused, { status: 429, code: 'insufficient_quota' });
      }
      await until('both run', () => upstreams[0]?.requests.length === 2);

      await toClient(server).responses.cancel(id);
      await until('its place is free', () => start(single.key).then(Boolean, () => false));
      await owner(`/dashboard/api/api-keys/${slow.id}`, { method: 'DELETE' });
      const ended = await until('it has ended', async () => {
        const now = await toClient(server).responses.retrieve(data.id);
        return now.status === 'in_progress' ? null : now;
      });
      assert.deepEqual([ended.status, ended.error?.code], ['failed', 'caller_revoked']);
      await until('the upstream is left', () => upstreams[0]?.requests[0]?.state === 'left');
    });
  });
}

test('a background response that its client can’t follow does not begin', async (t) => {
  const upstreams = [{ words: 1000, eventDelayMs: 50 }];
  const { server } = await startGateway(t, { upstreams });
  const api = toClient(server).responses;
  const { id } = await api.create({ model, input: 'go', background: true });
  const followed = await Promise.all(
    Array.from({ length: 100 }, () => api.retrieve(id, { stream: true })),
  );
  const create = () => api.create({ model, input: 'go', background: true, stream: true });
  await assert.rejects(create, { status: 429 });
  const db = await openRows(server);
  const begun = await db.selectFrom('responses').select('id').execute();
  assert.deepEqual(
    begun.map((row) => row.id),
    [id],
  );
  await db.destroy();
  followed[0]?.controller.abort();
  await until('there is room', () =>
    create().then(
      (stream) => stream.controller.abort() ?? true,
      () => false,
    ),
  );
  for (const { controller } of followed) controller.abort();
  await api.cancel(id);
});
