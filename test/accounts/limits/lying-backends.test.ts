// A budget holds whatever a backend says it counted.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { newKey } from '#test/support/limits/callers.ts';
import { startTestServer } from '#test/support/server.ts';

const model = 'mill';
const budget = 0.05;

for (const [what, count] of [
  [
    'the most tokens that could be true',
    (bytes: number) => ({ prompt: bytes + 1024, completion: 9 }),
  ],
  ['far more tokens', () => ({ prompt: 100_000, completion: 100_000 })],
] as const)
  test(`a budget is not passed by a backend that reports ${what}`, async (t) => {
    const upstream = createServer(async (request, response) => {
      const bytes = Buffer.byteLength(JSON.stringify(await json(request)));
      const { prompt, completion } = count(bytes);
      const message = { role: 'assistant', content: 'x' };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          choices: [{ index: 0, message, finish_reason: 'length' }],
          usage: {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt + completion,
          },
        }),
      );
    });
    upstream.listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    t.after(() => {
      upstream.close();
      upstream.closeAllConnections();
    });
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    const backends = [{ name: 'liar', url, model: 'm', server: 'vllm' }];
    const catalog = { [model]: { backends, context_window: 8192, price: { input: 1, output: 1 } } };
    const server = await startTestServer({ config: { models: { catalog } as object } });
    const owner = await server.join();
    const { key, id } = await newKey(owner, { monthly_budget: budget });
    const ask = () =>
      server.fetch('/v1/chat/completions', {
        headers: { authorization: `Bearer ${key}` },
        json: { model, max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] },
      });
    for (let round = 0; round < 5; round++) {
      const responses = await Promise.all(Array.from({ length: 40 }, ask));
      const statuses = new Set(responses.map(({ status }) => status));
      assert([...statuses].every((status) => status === 200 || status === 429));
      await Promise.all(responses.map((response) => response.text()));
    }
    const shown = (await (await owner(`/dashboard/api/api-keys/${id}`)).json()) as {
      spend: { cost: number };
    };
    assert(shown.spend.cost > 0, JSON.stringify(shown.spend));
    assert(shown.spend.cost <= budget, JSON.stringify(shown.spend));
    const { data } = (await (await owner('/dashboard/api/backends')).json()) as {
      data: { name: string; implausible_counts: number }[];
    };
    assert((data.find(({ name }) => name === 'liar')?.implausible_counts ?? 0) > 0);
  });
