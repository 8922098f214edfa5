// Streams whose model takes long: each API keeps them alive in its own form, and they are valid all the same.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { readChat } from '#test/support/chat-events.ts';
import { readMessage } from '#test/support/messages-events.ts';
import { readLines } from '#test/support/ollama-lines.ts';
import { checkResponseEvents, parseResponseEvents, textOf } from '#test/support/response-events.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const messages = [{ role: 'user', content: 'Go' }];
const said = 'The wheel';

describe('a stream that waits', () => {
  let server: TestServer;
  let late: ScriptedUpstream;
  let slow: ScriptedUpstream;
  let stuck: ScriptedUpstream;
  before(async () => {
    // Many times the time after which a stream is kept alive.
    late = await startScriptedUpstream({ words: 2, delayMs: 400 });
    slow = await startScriptedUpstream({ words: 2, eventDelayMs: 200 });
    stuck = await startScriptedUpstream({ behaviour: 'slow-headers' });
    const backend = ({ url }: ScriptedUpstream, more = {}) => ({
      backends: [{ name: 'scripted', url, model: 'scripted', server: 'vllm', ...more }],
    });
    const catalog = {
      late: backend(late),
      slow: backend(slow),
      stuck: backend(stuck, { first_byte_ms: 400 }),
    };
    server = await startTestServer({
      config: {
        models: { catalog, health: { probe_seconds: 3600, eject_after: 100 } } as object,
        inference: { keep_alive_seconds: 0.05 },
      },
    });
  });
  after(async () => {
    await server.stop();
    await Promise.all([late, slow, stuck].map((upstream) => upstream.close()));
  });

  async function stream(path: string, json: object): Promise<string> {
    const response = await server.fetch(path, { json: { stream: true, ...json } });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text;
  }

  test('chat sends comments between its events', async () => {
    const text = await stream('/v1/chat/completions', { model: 'slow', messages });
    assert.match(text, /\n\n: ping\n\n/);
    assert.equal(readChat(text, false).text, said);
  });

  test('chat has no status before its first chunk, so that a failure is still an HTTP error', async () => {
    const json = { model: 'stuck', messages, stream: true };
    const response = await server.fetch('/v1/chat/completions', { json });
    assert.equal(response.status, 504, await response.text());
  });

  test('responses repeat response.in_progress', async () => {
    const text = await stream('/v1/responses', { model: 'late', input: 'Go' });
    const bytes = Buffer.from(text).toString('latin1');
    const events = parseResponseEvents(bytes);
    const types = events.map(({ type }) => type);
    assert.deepEqual(types.slice(0, 3), [
      'response.created',
      'response.in_progress',
      'response.in_progress',
    ]);
    const { output } = checkResponseEvents(events);
    assert.equal(output.map(textOf).join(''), said);
  });

  test('messages are pinged before message_start, which has the true length', async () => {
    const body = { model: 'late', messages, max_tokens: 100 };
    const text = await stream('/v1/messages', body);
    assert(text.startsWith('event: ping\n'));
    const { blocks, pings, start } = readMessage(text);
    assert(pings > 1);
    assert.equal(blocks[0]?.text, said);
    assert((start.usage as { input_tokens: number }).input_tokens > 0);
  });

  for (const [path, body] of [
    ['/api/chat', { messages }],
    ['/api/generate', { prompt: 'Go' }],
  ] as const) {
    test(`${path} sends empty pieces`, async () => {
      const text = await stream(path, { model: 'late', ...body });
      const [first = ''] = text.split('\n', 1);
      const piece = JSON.parse(first) as { message?: { content: string }; response?: string };
      assert.equal(piece.message?.content ?? piece.response, '');
      assert.equal(readLines(text).text, said);
    });
  }

  test('a stream that was opened early tells of a failure inside of it', async () => {
    const model = 'stuck';
    const response = await stream('/v1/responses', { model, input: 'Go' });
    const failed = checkResponseEvents(parseResponseEvents(response));
    assert.deepEqual([failed.status, failed.error?.code], ['failed', 'upstream_timeout']);
    const message = await stream('/v1/messages', { model, messages, max_tokens: 9 });
    assert.match(message, /event: error\ndata: \{"type":"error","error":\{"type":"timeout_error"/);
    const lines = (await stream('/api/chat', { model, messages })).trimEnd().split('\n');
    assert.deepEqual(Object.keys(JSON.parse(lines.at(-1) ?? '')), ['error']);
  });
});
