// The upstream engine before a server that was not written here.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import type { Engine } from '#inference/engine.ts';
import { createUpstreamEngine } from '#inference/engines/upstream/upstream.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import type { EngineResponse, Usage } from '#inference/wire/response.ts';
import { chat, weatherTool } from '#test/support/builtin.ts';
import { newCall, readStream } from '#test/support/engine-call.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

describe('the upstream engine with aimock', () => {
  const mock = new LLMock({ port: 0 });
  let engine: Engine;

  before(async () => {
    const text = 'Grüße 👩‍🔧 — “水”, said the miller.';
    mock.onMessage('greet', { content: text }, { chunkSize: 3 });
    const call = { name: 'get_weather', arguments: '{"city":"Köln 👋"}' };
    mock.onMessage('weather', { toolCalls: [call] }, { chunkSize: 2 });
    mock.onMessage('cut', { content: text }, { chunkSize: 3, truncateAfterChunks: 2 });
    const error = { message: 'Slow down', type: 'rate_limit_error', code: 'rate_limit_exceeded' };
    mock.onMessage('too often', { error, status: 429 });
    await mock.start();
    engine = createUpstreamEngine(upstreamOptions(`${mock.url}/v1`, { server: 'openai' }));
  });
  after(async () => {
    await engine.close();
    await mock.stop();
  });

  async function both(content: string): Promise<[EngineResponse, EngineResponse]> {
    const task = chat({ messages: [{ role: 'user', content }], tools: [weatherTool] });
    let usage: Usage | null = null;
    const onUsage = (soFar: Usage) => {
      usage = soFar;
    };
    const stream = await engine.stream(task, newCall({ onUsage }));
    const folded = foldChunks('chat', await readStream(stream, () => usage));
    return [await engine.respond(task, newCall()), folded];
  }

  test('text is the same plain and streamed', async () => {
    for (const { choices } of await both('greet')) {
      const [choice] = choices;
      assert.ok(choice !== undefined && 'message' in choice);
      assert.equal(choice.message.content, 'Grüße 👩‍🔧 — “水”, said the miller.');
      assert.equal(choice.finish_reason, 'stop');
    }
  });

  test('tool calls are assembled from their pieces', async () => {
    for (const { choices } of await both('weather')) {
      const [choice] = choices;
      assert.ok(choice !== undefined && 'message' in choice);
      assert.equal(choice.finish_reason, 'tool_calls');
      assert.deepEqual(choice.message.tool_calls?.[0]?.function, {
        name: 'get_weather',
        arguments: '{"city":"Köln 👋"}',
      });
    }
  });

  test('a stream cut off is unavailable, a 429 is overload, and a 404 is not the client’s fault', async () => {
    const streamed = async (content: string) => {
      for await (const _ of await engine.stream(chat(content), newCall()));
    };
    await assert.rejects(streamed('cut'), { failure: 'unavailable' });
    await assert.rejects(streamed('too often'), { failure: 'overloaded' });
    await assert.rejects(engine.respond(chat('unheard of'), newCall()), { failure: 'unavailable' });
  });
});
