// Clients that leave before their response is complete: generation stops, what was generated is billed, and nothing is
// left behind.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { UsageRequest, UsageRequestPage } from '#accounts/usage/schema.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { type KeyView, newKey } from '#test/support/limits/callers.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'mill';
const messages = [{ role: 'user', content: 'Go' }];
const requests: Record<string, object> = {
  '/v1/chat/completions': { messages },
  '/v1/completions': { prompt: 'Go', max_tokens: 1000 },
  '/v1/responses': { input: 'Go' },
  '/v1/messages': { messages, max_tokens: 1000 },
  '/api/chat': { messages },
  '/api/generate': { prompt: 'Go' },
};

describe('a client that leaves', () => {
  let server: TestServer;
  let owner: SessionFetch;
  let endless: ScriptedUpstream;
  let long: ScriptedUpstream;
  before(async () => {
    endless = await startScriptedUpstream({ behaviour: 'never-ends' });
    long = await startScriptedUpstream({ words: 20, eventDelayMs: 20 });
    const backend = ({ url }: ScriptedUpstream) => ({
      backends: [{ name: 'scripted', url, model: 'scripted', server: 'vllm' }],
      price: { input: 1000, output: 1000 },
    });
    const catalog = { [model]: backend(endless), long: backend(long) };
    server = await startTestServer({
      config: { models: { catalog, health: { probe_seconds: 3600 } } as object },
    });
    owner = await server.join();
  });
  after(async () => {
    await server.stop();
    await Promise.all([endless.close(), long.close()]);
  });

  const send = ({ key }: KeyView, path: string, json: object, signal?: AbortSignal) =>
    server.fetch(path, {
      json,
      headers: { authorization: `Bearer ${key}` },
      ...(signal !== undefined && { signal }),
    });

  /** The row of the only request of a key, once it has ended. */
  const untilRow = ({ id }: KeyView): Promise<UsageRequest> =>
    until('the row is written', async () => {
      const response = await owner(`/dashboard/api/usage/requests?key=${id}`);
      const [row] = ((await response.json()) as UsageRequestPage).data;
      return row !== undefined && row.status !== 'running' ? row : null;
    });

  const outstanding = async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    return [...metrics.matchAll(/^millrace_backend_outstanding_requests\{.*\} (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
  };

  /** Leaves once the upstream generates and, if it streams, something has arrived. */
  async function leave(key: KeyView, path: string, stream: boolean): Promise<string> {
    const leaving = new AbortController();
    const known = endless.requests.length;
    const pending = send(key, path, { model, ...requests[path], stream }, leaving.signal);
    pending.catch(() => {});
    await until('it generates', () => endless.requests.length > known);
    let seen = '';
    if (stream) {
      const decoder = new TextDecoder();
      const reader = (await pending).body?.getReader();
      while (!seen.includes('wheel') && !seen.includes('The')) {
        seen += decoder.decode((await reader?.read())?.value, { stream: true });
      }
    }
    leaving.abort();
    await assert.rejects(pending.then((response) => response.text()));
    await until('the upstream is left', () => endless.requests[known]?.state === 'left');
    return seen;
  }

  for (const path of Object.keys(requests)) {
    for (const stream of [true, false]) {
      test(`${stream ? 'a stream' : 'a whole response'} of ${path} stops, is billed, and frees its place`, async () => {
        const key = await newKey(owner, { concurrent_requests: 1 });
        const seen = await leave(key, path, stream);
        const row = await untilRow(key);
        assert.equal(row.status, 'aborted');
        assert.equal(row.code, null);
        assert(row.prompt_tokens > 0 && row.completion_tokens > 0, JSON.stringify(row));
        assert.equal(row.cost, (row.prompt_tokens + row.completion_tokens) / 1000);
        // What a server generates for a whole response is not known until it is sent.
        assert.equal(row.reserved, !stream);
        assert.equal(await outstanding(), 0);
        const again = await send(key, '/tokenize', { model, prompt: 'Go' });
        assert.equal(again.status, 200, await again.text());
        const id = /"id":"(resp_[0-9a-f]+)"/.exec(seen)?.[1] ?? `resp_${row.id}`;
        assert.equal((await server.fetch(`/v1/responses/${id}`)).status, 404);
      });
    }
  }

  test('a background response goes on without its client, is stored, and billed once', async () => {
    const key = await newKey(owner, {});
    const leaving = new AbortController();
    const body = { model: 'long', input: 'Go', background: true, stream: true };
    const response = await send(key, '/v1/responses', body, leaving.signal);
    const reader = response.body?.getReader();
    const first = new TextDecoder().decode((await reader?.read())?.value);
    const id = /"id":"(resp_[0-9a-f]+)"/.exec(first)?.[1];
    leaving.abort();
    const ended = await until('it is complete', async () => {
      const { status, ...rest } = (await (await server.fetch(`/v1/responses/${id}`)).json()) as {
        status: string;
        usage: { output_tokens: number };
      };
      return status === 'completed' ? rest : null;
    });
    assert.equal(ended.usage.output_tokens, 20);
    const row = await untilRow(key);
    assert.deepEqual([row.status, row.completion_tokens], ['done', 20]);
    assert.equal(long.requests.length, 1);
  });
});
