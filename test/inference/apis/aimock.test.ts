// A backend that was not written here, behind a whole server: the official client on one side, aimock on
// the other.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import OpenAI from 'openai';
import { weatherTool } from '#test/support/builtin.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const text = 'Grüße 👩‍🔧 — “水”, said the miller.';

describe('a model served by aimock', () => {
  const mock = new LLMock({ port: 0 });
  let server: TestServer;
  let client: OpenAI;

  before(async () => {
    mock.onMessage('greet', { content: text }, { chunkSize: 3 });
    const call = { name: 'get_weather', arguments: '{"city":"Köln 👋"}' };
    mock.onMessage('weather', { toolCalls: [call] }, { chunkSize: 2 });
    mock.onMessage('cut', { content: text }, { chunkSize: 3, truncateAfterChunks: 2 });
    await mock.start();
    const backend = { name: 'mock', url: `${mock.url}/v1`, model: 'gpt-4o' };
    const config = { models: { catalog: { 'hermes3-8b': { backends: [backend] } } } };
    server = await startTestServer({ config });
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });
  });
  after(() => mock.stop());

  const ask = (content: string) => ({
    model: 'hermes3-8b',
    messages: [{ role: 'user' as const, content }],
  });

  test('answers plainly and as a stream with the same words, under our name and ids', async () => {
    const { data: plain, response } = await client.chat.completions
      .create(ask('greet'))
      .withResponse();
    assert.equal(plain.choices[0]?.message.content, text);
    assert.equal(plain.model, 'hermes3-8b');
    assert.match(plain.id, /^chat-[0-9a-f]{32}$/);
    assert.equal(response.headers.get('x-served-by'), 'mock');
    let streamed = '';
    const ids = new Set<string>();
    const stream = await client.chat.completions.create({ ...ask('greet'), stream: true });
    for await (const chunk of stream) {
      ids.add(`${chunk.id} ${chunk.model}`);
      streamed += chunk.choices[0]?.delta.content ?? '';
    }
    assert.equal(streamed, text);
    assert.match([...ids].join(), /^chat-[0-9a-f]{32} hermes3-8b$/);
  });

  test('its tool calls arrive whole', async () => {
    const runner = client.chat.completions.stream({ ...ask('weather'), tools: [weatherTool] });
    const { choices } = await runner.finalChatCompletion();
    assert.equal(choices[0]?.finish_reason, 'tool_calls');
    const [call] = choices[0]?.message.tool_calls ?? [];
    assert(call?.type === 'function');
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Köln 👋' });
  });

  test('a stream it cuts off ends with an error, not as if it were whole', async () => {
    // As a status when the end was seen before the first byte was sent, else inside the stream.
    await assert.rejects(async () => {
      const stream = await client.chat.completions.create({ ...ask('cut'), stream: true });
      for await (const _ of stream);
    }, /failed while it was answering/);
  });
});
