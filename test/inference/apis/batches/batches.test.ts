// Batches as the SDK of OpenAI creates, reads, lists and cancels them, on both databases.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import OpenAI from 'openai';
import type { UsageRequestPage } from '#accounts/usage/schema.ts';
import {
  createBatch,
  readResults,
  toClient,
  toLine,
  toLines,
  toText,
  untilEnded,
} from '#test/support/batches.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { type DatabaseKind, databases } from '#test/support/databases.ts';
import { type GatewayOptions, startGateway } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

const start = (
  context: TestContext,
  database: DatabaseKind,
  options: Partial<GatewayOptions> = {},
) => startGateway(context, { upstreams: [{ words: 5 }], server: { database }, ...options });

const isError = (status: number, code: string) => (error: unknown) => {
  assert.ok(error instanceof OpenAI.APIError);
  assert.deepEqual([error.status, error.code], [status, code]);
  return true;
};

for (const database of databases) {
  describe(`batches on ${database}`, () => {
    test('every line is answered once, billed once at its own price, and its results are files', async (context) => {
      const model = { price: { input: 1, output: 1, cached: null } } as never;
      const { server, upstreams } = await start(context, database, { model });
      const owner = await server.join();
      const client = toClient(server);
      const lines = [...toLines(30), toLine('bad', {}, { max_tokens: 1_000_000 })];
      const created = await createBatch(client, toText(lines), { metadata: { job: 'nightly' } });
      assert.equal(created.status, 'validating');
      assert.equal(created.object, 'batch');
      const batch = await untilEnded(client, created.id);
      assert.equal(batch.status, 'completed', JSON.stringify(batch));
      assert.deepEqual(batch.request_counts, { total: 31, completed: 30, failed: 1 });
      assert.deepEqual(batch.metadata, { job: 'nightly' });
      const results = await readResults(client, batch.output_file_id);
      assert.deepEqual(
        results.map((it) => it.custom_id).sort(),
        toLines(30)
          .map((it) => it.custom_id)
          .sort(),
      );
      for (const { response, error } of results) {
        assert.equal(error, null);
        assert.equal(response?.status_code, 200);
        assert.equal(response?.body.object, 'chat.completion');
      }
      const [failed, ...others] = await readResults(client, batch.error_file_id);
      assert.deepEqual(others, []);
      assert.equal(failed?.custom_id, 'bad');
      assert.equal(failed?.response?.status_code, 400);
      assert.equal(upstreams[0]?.requests.length, 30);
      const page = (await (
        await owner('/dashboard/api/usage/requests?limit=100')
      ).json()) as UsageRequestPage;
      const rows = page.data.filter((row) => row.status === 'done');
      assert.equal(rows.length, 30);
      const ids = new Set(results.map(({ response }) => response?.request_id));
      for (const row of rows) {
        assert.ok(ids.has(row.id));
        assert.equal(row.operation, 'batch_chat');
        const tokens = row.prompt_tokens + row.completion_tokens;
        assert.equal(row.cost, tokens / 1e6 / 2);
      }
      const output = await client.files.retrieve(batch.output_file_id as string);
      assert.equal(output.purpose, 'batch_output');
    });

    test('lines that break a rule fail the batch, and errors name them', async (context) => {
      const { server, upstreams } = await start(context, database);
      const client = toClient(server);
      const text = [
        JSON.stringify(toLine('a')),
        'not json',
        JSON.stringify(toLine('a')),
        '',
        JSON.stringify(toLine('b', { url: '/v1/completions' })),
        JSON.stringify(toLine('c', {}, { stream: true })),
        JSON.stringify(toLine('d', {}, { temperature: 9 })),
        JSON.stringify(toLine('e', { method: 'GET' })),
        JSON.stringify(toLine('', {})),
        JSON.stringify(toLine('f', {}, { model: 'unknown' })),
        JSON.stringify(toLine('g', { body: 5 })),
      ].join('\n');
      const batch = await untilEnded(client, (await createBatch(client, text)).id);
      assert.equal(batch.status, 'failed');
      const errors = (batch.errors?.data ?? []).map(({ line, code, param }) => [line, code, param]);
      assert.deepEqual(errors, [
        [2, 'invalid_json_line', null],
        [3, 'duplicate_custom_id', 'custom_id'],
        [5, 'mismatched_url', 'url'],
        [6, 'invalid_value', 'body.stream'],
        [7, 'decimal_above_max_value', 'body.temperature'],
        [8, 'invalid_method', 'method'],
        [9, 'invalid_custom_id', 'custom_id'],
        [10, 'model_not_found', 'body.model'],
        [11, 'invalid_type', 'body'],
      ]);
      assert.deepEqual(upstreams[0]?.requests, []);
      const empty = await untilEnded(client, (await createBatch(client, '\n\n')).id);
      assert.equal(empty.errors?.data?.[0]?.code, 'empty_file');
    });

    test('a cancelled batch stops, keeps what was done, and bills nothing else', async (context) => {
      const { server, upstreams } = await start(context, database, {
        upstreams: [{ behaviour: 'slow-headers' }],
      });
      const client = toClient(server);
      const { id, input_file_id } = await createBatch(client, toText(toLines(20)));
      await until('lines are in flight', () => (upstreams[0]?.requests.length ?? 0) > 0);
      await assert.rejects(client.files.delete(input_file_id), isError(409, 'file_in_use'));
      assert.equal((await client.batches.cancel(id)).status, 'cancelling');
      const batch = await untilEnded(client, id);
      assert.equal(batch.status, 'cancelled');
      assert.equal(batch.request_counts?.completed, 0);
      assert.equal(batch.output_file_id, null);
      await assert.rejects(client.batches.cancel(id), isError(409, 'batch_not_cancellable'));
      await client.files.delete(input_file_id);
    });

    test('a batch ends when its API key is revoked, and says why', async (context) => {
      const { server, upstreams } = await start(context, database, {
        upstreams: [{ behaviour: 'slow-headers' }],
      });
      const owner = await server.join();
      const made = await owner('/dashboard/api/api-keys', { json: { label: 'k' } });
      const { id: keyId, key } = (await made.json()) as { id: string; key: string };
      const { id } = await createBatch(toClient({ ...server, key }), toText(toLines(20)));
      await until('lines are in flight', () => (upstreams[0]?.requests.length ?? 0) > 0);
      await owner(`/dashboard/api/api-keys/${keyId}`, { method: 'DELETE' });
      const batch = await untilEnded(toClient(server), id);
      assert.equal(batch.status, 'cancelled');
      assert.equal(batch.errors?.data?.[0]?.code, 'caller_revoked');
      assert.equal(batch.request_counts?.completed, 0);
    });

    test('an expired batch has what was done, and names what was not', async (context) => {
      const clock = createRunningClock();
      const { server, upstreams } = await start(context, database, {
        upstreams: [{ words: 5, delayMs: 300 }],
        inference: { batches: { concurrency: 1 } } as never,
        server: { database, clock },
      });
      const client = toClient(server);
      const { id } = await createBatch(client, toText(toLines(4)), { completion_window: '10m' });
      await until('the first line is in flight', () => upstreams[0]?.requests.length === 1);
      // The first line is answered, and the others never are.
      upstreams[0]?.behave('slow-headers');
      await until('a line is done', async () => {
        const { request_counts: counts } = await client.batches.retrieve(id);
        return counts?.completed === 1;
      });
      clock.turn(700_000);
      const batch = await untilEnded(client, id);
      assert.equal(batch.status, 'expired');
      assert.deepEqual(batch.request_counts, { total: 4, completed: 1, failed: 3 });
      const good = await readResults(client, batch.output_file_id);
      const bad = await readResults(client, batch.error_file_id);
      assert.deepEqual(new Set(bad.map(({ error }) => error?.code)), new Set(['batch_expired']));
      const all = [...good, ...bad].map((it) => it.custom_id).sort();
      assert.deepEqual(all, ['line-0', 'line-1', 'line-2', 'line-3']);
    });

    test('pages of batches follow each other, and unknown ids are refused', async (context) => {
      const { server } = await start(context, database);
      const client = toClient(server);
      const ids: string[] = [];
      for (let count = 0; count < 3; count++) ids.push((await createBatch(client, '{}')).id);
      const found: string[] = [];
      for await (const { id } of client.batches.list({ limit: 2 })) found.push(id);
      assert.deepEqual(found.toSorted(), ids.toSorted());
      await assert.rejects(client.batches.retrieve('batch_no'), isError(404, 'batch_not_found'));
      await assert.rejects(client.batches.cancel('batch_no'), isError(404, 'batch_not_found'));
      const wrong = { input_file_id: 'file-no', completion_window: '24h' as const };
      await assert.rejects(
        client.batches.create({ ...wrong, endpoint: '/v1/chat/completions' }),
        isError(404, 'file_not_found'),
      );
      await assert.rejects(
        client.batches.create({ ...wrong, endpoint: '/v1/videos' }),
        isError(400, 'invalid_value'),
      );
    });
  });
}
