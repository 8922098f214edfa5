// Usage of answers that come from another server, which says what was used only at the end, if it comes to
// that; and that however a request ends, one row is left of it and nothing stays reserved.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import type { UsageRequest, UsageRequestPage } from '#accounts/usage/schema.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import type { ChatRequest } from '#inference/schema.ts';
import { newKey } from '#test/support/limits/callers.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.1-8b-instruct';
const messages = [{ role: 'user', content: 'Write down everything that you know about mills.' }];

describe('usage of requests served by an upstream', () => {
  let upstream: ScriptedUpstream;
  let server: TestServer;
  let owner: SessionFetch;
  before(async () => {
    upstream = await startScriptedUpstream({ eventDelayMs: 30, words: 500 });
    server = await startTestServer({
      config: {
        models: {
          catalog: { [model]: { backends: [{ name: 'there', url: upstream.url }] } },
        } as never,
      },
    });
    owner = await server.join();
  });
  after(() => upstream.close());

  const list = async (query = '') => {
    const response = await owner(`/dashboard/api/usage/requests?limit=500${query}`);
    return ((await response.json()) as UsageRequestPage).data;
  };
  const ended = (id: string) =>
    until<UsageRequest | undefined>('it has ended', async () =>
      (await list()).find((row) => row.id === id && row.status !== 'running'),
    );

  test('a long stream is listed with its tokens while it runs, and its prompt is counted if it is cut off', async () => {
    const leaving = new AbortController();
    const body = { model, messages, stream: true };
    // Kept in a variable: fetch aborts a response that is garbage-collected.
    const response = await server.fetch('/v1/chat/completions', {
      json: body,
      signal: leaving.signal,
    });
    assert.equal(response.headers.get('x-served-by'), 'there');
    const id = response.headers.get('x-request-id') ?? '';
    const running = await until('its progress is listed', async () =>
      (await list('&status=running')).find((row) => row.id === id && row.completion_tokens > 0),
    );
    leaving.abort();
    await assert.rejects(response.text());
    const row = await ended(id);
    assert.equal(row.status, 'aborted');
    assert(row.completion_tokens >= running.completion_tokens && row.completion_tokens < 500);
    const task = { kind: 'chat', body: body as unknown as ChatRequest } as const;
    assert.equal(row.prompt_tokens, await createLlama3Counter().count(task, 'llama3', 1e6));
    assert.equal(row.cost, (row.prompt_tokens * 25 + row.completion_tokens * 40) / 1e9);
  });

  test('every way to end frees the slot and leaves one row', async () => {
    const key = await newKey(owner, { concurrent_requests: 1, tokens_per_minute: 300_000 });
    const authorization = `Bearer ${key.key}`;
    const ask = (json: object, signal?: AbortSignal) =>
      server.fetch('/v1/chat/completions', {
        json: { model, messages, max_tokens: 5, ...json },
        headers: { authorization },
        ...(signal === undefined ? {} : { signal }),
      });
    const isLetIn = ({ status }: { status: string }) => status !== 'refused';
    const rows = async () => (await list(`&key=${key.id}`)).filter(isLetIn);
    let count = 0;
    /** With one request at a time the next one only comes in when the last one is over. */
    async function ends(status: string, code: string | null) {
      count++;
      const row = await until('its row is there', async () => {
        const all = await rows();
        return all.length >= count && all[0]?.status !== 'running' ? all[0] : undefined;
      });
      assert.deepEqual([row?.status, row?.code], [status, code]);
      assert.equal((await rows()).length, count);
    }

    await (await ask({})).text();
    await ends('done', null);
    await (await ask({ stream: true })).text();
    await ends('done', null);
    assert.equal((await ask({ max_tokens: 100_000, n: 4 })).status, 429);
    assert.equal((await ask({ temperature: 9 })).status, 400);
    assert.equal((await ask({ model: 'nobody' })).status, 404);
    const long = 'mill '.repeat(60_000);
    const tooLong = [{ role: 'user', content: long }];
    assert.equal((await ask({ messages: tooLong, max_tokens: 100_000 })).status, 400);
    await ends('failed', 'context_length_exceeded');

    for (const stream of [true, false]) {
      upstream.behave(stream ? 'answers' : 'slow-headers');
      const leaving = new AbortController();
      const before = upstream.requests.length;
      const left = ask({ stream, max_tokens: 500 }, leaving.signal);
      left.catch(() => {});
      await until('it was asked', () => upstream.requests.length > before);
      assert.equal((await ask({})).status, 429);
      leaving.abort();
      await ends('aborted', null);
    }

    upstream.behave('dies-at-once');
    assert.equal((await ask({})).status, 502);
    await ends('failed', 'upstream_error');
    upstream.behave('answers');
    const last = await until('it is trusted again', async () => {
      const response = await ask({});
      if (response.status === 503) count++;
      return response.status === 200 ? response : undefined;
    });
    const refused = (await list(`&key=${key.id}&status=refused`)).map(({ code }) => code);
    const limited = 'rate_limit_exceeded';
    const others = ['model_not_found', 'decimal_above_max_value'];
    assert.deepEqual(refused, [limited, limited, ...others, limited]);
    // What was not used of what was reserved is there again, but for what the requests of before have used.
    assert(Number(last.headers.get('x-ratelimit-remaining-tokens')) > 290_000);
  });
});
