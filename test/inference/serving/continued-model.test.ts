// The real thing: two servers with the embedded model behind a third, one of them killed while it speaks.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { type RunningProcess, serveMillrace } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const key = 'secret_test_0123456789abcdef0123456789abcdef.AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH';
const model = 'hermes3-8b';
const question = { role: 'user', content: 'Tell me a long story about a mill.' } as const;

describe('a model that dies during a response', () => {
  let workers: RunningProcess[];
  let server: TestServer;
  let client: OpenAI;

  before(async () => {
    workers = await Promise.all([1, 2].map(() => serveMillrace([], { MILLRACE_API_KEY: key })));
    const backends = workers.map(({ url }, at) => ({
      name: `worker-${at}`,
      url: `${url}/v1`,
      api_key: key,
      model,
      server: 'vllm',
    }));
    server = await startTestServer({
      config: { models: { catalog: { [model]: { backends } } } as object },
    });
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });
  });

  const ask = { model, messages: [question], temperature: 0, max_tokens: 60 };

  test('the client’s text is that of an undisturbed response', async () => {
    const whole = await client.chat.completions.create(ask);
    const text = whole.choices[0]?.message.content ?? '';
    assert(text.length > 60, text);

    const { data: stream, response } = await client.chat.completions
      .create({ ...ask, stream: true, stream_options: { include_usage: true } })
      .withResponse();
    const speaker = workers[Number(response.headers.get('x-served-by')?.at(-1))];
    assert(speaker !== undefined);
    let said = '';
    let roles = 0;
    const ids = new Set<string>();
    let usage: OpenAI.CompletionUsage | null = null;
    for await (const { id, choices, usage: counts } of stream) {
      ids.add(id);
      usage = counts ?? usage;
      if (choices[0]?.delta.role) roles++;
      said += choices[0]?.delta.content ?? '';
      if (said.length > 20) speaker.child.kill('SIGKILL');
    }
    assert.equal(said, text);
    assert.deepEqual([roles, ids.size], [1, 1]);
    assert.equal(usage?.completion_tokens, whole.usage?.completion_tokens);
    assert.equal(usage?.prompt_tokens, whole.usage?.prompt_tokens);
    const metrics = await (await server.fetch('/metrics')).text();
    assert.match(metrics, /millrace_continued_streams_total\{[^}]*\} 1/);
  });
});
