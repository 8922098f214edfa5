// The errors that clients of the Messages API get if a backend fails, is overloaded, or takes long to begin.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventStream } from '#http/sse.ts';
import { createMessagesFormat } from '#inference/apis/messages/format.ts';
import type { Delivery } from '#inference/delivery.ts';
import { OutgoingStream, type StreamedRequest } from '#inference/serving/outgoing-stream.ts';
import type { Usage } from '#inference/wire/response.ts';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { parseMessageEvents, readMessage } from '#test/support/messages-events.ts';

const messages = [{ role: 'user' as const, content: 'Hi' }];
const body = { model: gatewayModel, max_tokens: 20, messages };

test('an overloaded backend is a 529 that says when to try again', async (t) => {
  const { server } = await startGateway(t, { upstreams: [{ behaviour: 'too-many-requests' }] });
  for (const stream of [false, true]) {
    const response = await server.fetch('/v1/messages', { json: { ...body, stream } });
    assert.equal(response.status, 529);
    assert(Number(response.headers.get('retry-after')) > 0);
    const { error } = (await response.json()) as { error: { type: string } };
    assert.equal(error.type, 'overloaded_error');
  }
});

test('a stream that breaks ends with an error', async (t) => {
  const { server } = await startGateway(t, {
    upstreams: [{ behaviour: 'dies-after-first-chunk' }],
    model: { continue_streams: false },
  });
  const response = await server.fetch('/v1/messages', { json: { ...body, stream: true } });
  assert.equal(response.status, 200);
  const events = parseMessageEvents(await response.text());
  assert.equal(events[0]?.type, 'message_start');
  const last = events.at(-1) as unknown as { type: string; error: object; request_id: string };
  assert.equal(last.type, 'error');
  assert.equal((last.error as { type: string }).type, 'api_error');
  assert.equal(last.request_id, response.headers.get('x-request-id'));
});

test('a body over the limit is a 413', async (t) => {
  const { server } = await startGateway(t, { upstreams: [{}], inference: { max_body_mib: 1 } });
  const content = 'x'.repeat(2 ** 20);
  const response = await server.fetch('/v1/messages', {
    json: { ...body, messages: [{ role: 'user', content }] },
  });
  assert.equal(response.status, 413);
  const { error } = (await response.json()) as { error: { type: string } };
  assert.equal(error.type, 'request_too_large');
});

test('a stream that waits for its model sends pings, and begins with the true length', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let sent = '';
  const events = {
    pass(text: string) {
      sent += text;
    },
    end() {},
  } as unknown as EventStream;
  const delivery = {
    signal: new AbortController().signal,
    openStream: () => events,
  } as unknown as Delivery;
  const usage: Usage = {
    prompt_tokens: 42,
    completion_tokens: 0,
    total_tokens: 42,
    prompt_tokens_details: null,
  };
  const streamed = {
    request: { delivery, begunMs: 0 },
    format: createMessagesFormat(body),
    headers: [],
    account: { countPrompt: async () => usage, completeCounts: async () => {}, usage: () => usage },
  } as unknown as StreamedRequest;
  const envelope = { requestId: '1', id: 'chat-1', created: 1, model: 'm', kind: 'chat' } as const;
  const stream = new OutgoingStream(streamed, envelope, 15_000);
  t.mock.timers.tick(14_999);
  assert.equal(stream.isOpen, false);
  t.mock.timers.tick(1);
  assert.equal(stream.isOpen, true);
  assert.deepEqual(parseMessageEvents(sent), [{ type: 'ping' }]);
  await stream.start();
  const delta = { content: 'Hello.' };
  const choice = { index: 0, delta, logprobs: null, finish_reason: 'stop' as const };
  stream.take({ choices: [choice], usage: null });
  await stream.end();
  const { start, pings, blocks } = readMessage(sent);
  assert.equal((start.usage as { input_tokens: number }).input_tokens, 42);
  assert.equal(pings, 1);
  assert.deepEqual(blocks, [{ type: 'text', text: 'Hello.' }]);
});
