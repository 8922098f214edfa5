// Upstreams whose output has members of odd types, seen through every API that writes it anew; and requests whose
// unchecked members are odd. Neither may be a fault of the server, and every event must have its types.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { readMessage } from '#test/support/messages-events.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const toCalls = (...calls: unknown[]) => ({ tool_calls: calls });
const many = (text: string) =>
  Array.from({ length: 5_000 }, (_, index) => ({
    index,
    id: `call_${index}`,
    function: { name: 'f', arguments: text },
  }));
const oddTexts: unknown[] = [
  5,
  true,
  {},
  ['a'],
  [null],
  [{ type: 'text', text: 'hi' }],
  { toString: 1 },
];
const oddDeltas: unknown[] = [
  ...[null, 5, 'x', []],
  ...[5, 'abc', {}, true].map((tool_calls) => ({ tool_calls })),
  ...[null, 5, 'x', [], {}, { function: null }, { function: 5 }].map((call) => toCalls(call)),
  toCalls({ index: -1, function: { name: 'f', arguments: '{}' } }),
  toCalls({ index: 1e9, function: { name: 'f', arguments: '{}' } }),
  toCalls({ index: '__proto__', id: '__proto__', function: { name: '__proto__' } }),
  toCalls({ index: null, id: 5, function: { name: 5, arguments: 5 } }),
  toCalls({ index: {}, id: {}, function: { name: {}, arguments: { a: 1 } } }),
  toCalls({ index: 0, id: 'c', function: { name: 'f\n\ndata: x', arguments: '}}]]"' } }),
  toCalls(...many('{}')),
  toCalls(...many('{')),
  ...oddTexts.flatMap((text) => [
    { content: text },
    { reasoning_content: text },
    { reasoning: text, content: 'a' },
  ]),
];

const messages = [{ role: 'user', content: 'Go' }];
const model = 'agent';
const requests = {
  '/v1/messages': { model, max_tokens: 100, messages },
  '/api/chat': { model, messages },
  '/api/generate': { model, prompt: 'Go' },
  '/v1/responses': { model, input: 'Go', store: false },
};

/** Members that are texts wherever they occur in these APIs, besides objects of the same names. */
const notText =
  /"(?:thinking|partial_json|response|arguments|name|delta|text)":(?:\d|true|false|\[)/;

describe('odd members', () => {
  let server: TestServer;
  let said: unknown;
  const upstream = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    const { stream } = JSON.parse(Buffer.concat(chunks).toString() || '{}');
    const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 };
    if (stream !== true) {
      response.setHeader('content-type', 'application/json');
      const choices = [{ index: 0, message: said, finish_reason: 'stop' }];
      return response.end(JSON.stringify({ data: [{ id: 'odd' }], choices, usage }));
    }
    response.setHeader('content-type', 'text/event-stream');
    const send = (choices: unknown, more = {}) =>
      response.write(`data: ${JSON.stringify({ id: 'x', created: 1, choices, ...more })}\n\n`);
    send([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
    send([null, 5, { index: 0, delta: said, finish_reason: null }]);
    send([{ index: 7, delta: { content: 'not asked for' }, finish_reason: null }]);
    send([{ index: 0, delta: { content: 'end' }, finish_reason: null }]);
    send([{ index: 0, delta: {}, finish_reason: 'unheard_of' }]);
    send([{ index: 0, delta: {}, finish_reason: 'stop' }]);
    send([], { usage });
    response.end('data: [DONE]\n\n');
  });
  before(async () => {
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    const backends = [{ name: 'odd', url, model: 'odd' }];
    const catalog = { agent: { context_window: 8192, backends } };
    const models = { catalog, health: { probe_seconds: 3600 } };
    server = await startTestServer({ config: { models } as object });
  });
  after(async () => {
    await server.stop();
    upstream.close().closeAllConnections();
  });

  const post = async (path: string, json: object) => {
    const response = await server.fetch(path, { json });
    return { status: response.status, text: await response.text() };
  };

  for (const [path, body] of Object.entries(requests)) {
    test(`an upstream can’t break a stream of ${path}`, async () => {
      for (const delta of oddDeltas) {
        said = delta;
        const { status, text } = await post(path, { ...body, stream: true });
        const shown = `${JSON.stringify(delta).slice(0, 100)}: ${text.slice(-300)}`;
        assert.equal(status, 200, shown);
        assert.doesNotMatch(text, /"error":"|event: error|response\.failed|not asked for/, shown);
        assert.doesNotMatch(text, notText, shown);
        if (path === '/v1/messages') readMessage(text);
      }
    });

    test(`an upstream can’t break a whole response of ${path}`, async () => {
      for (const message of oddDeltas.filter((one) => typeof one === 'object')) {
        if (Array.isArray(message)) continue;
        said = message;
        const { status, text } = await post(path, { ...body, stream: false });
        const shown = `${JSON.stringify(message).slice(0, 100)}: ${text.slice(-300)}`;
        assert.equal(status, 200, shown);
        assert.doesNotMatch(text, notText, shown);
      }
    });
  }

  test('members that no schema checks are refused or left out', async () => {
    said = { content: 'Hello.' };
    const hostile = { toString: 1, valueOf: 1 };
    const oddBlocks: object[] = [
      { type: 'thinking', thinking: hostile },
      { type: 'tool_use', id: hostile, name: 'f', input: {} },
      { type: 'tool_use', id: 'a', name: hostile, input: {} },
      { type: 'tool_use', id: 'a', name: 'f', input: hostile },
      { type: 'tool_result', tool_use_id: hostile, content: hostile },
      { type: 'image', source: hostile },
      { type: 'search_result', title: hostile, content: [hostile, null, 5] },
    ];
    const bodies: [string, object][] = oddBlocks.flatMap((block) =>
      ['user', 'assistant'].flatMap((role): [string, object][] => {
        const spoken = [{ role, content: [block] }, ...messages];
        const body = { model, max_tokens: 10, messages: spoken };
        return [
          ['/v1/messages', body],
          ['/v1/messages/count_tokens', body],
        ];
      }),
    );
    for (const output of [[null], [5], [hostile], [{ type: 'text', text: hostile }]]) {
      const item = { type: 'function_call_output', call_id: 'a', output };
      bodies.push(['/v1/responses', { model, store: false, input: [item] }]);
    }
    for (const inner of [{ name: hostile }, { name: 5 }, { name: 'f', description: hostile }]) {
      const space = { type: 'namespace', name: 'n', tools: [{ type: 'function', ...inner }] };
      bodies.push(['/v1/responses', { model, store: false, input: 'Go', tools: [space] }]);
      const outer = { type: 'namespace', name: 'o', tools: [{ ...space, tools: hostile }] };
      bodies.push(['/v1/responses', { model, store: false, input: 'Go', tools: [outer] }]);
    }
    for (const options of [{ seed: 1e300 }, { stop: '' }, { stop: ['a', ''] }]) {
      bodies.push(['/api/chat', { model, messages, stream: false, options }]);
      bodies.push(['/api/generate', { model, prompt: 'Go', raw: true, stream: false, options }]);
    }
    for (const [path, body] of bodies) {
      const { status, text } = await post(path, body);
      assert(status < 500, `${path} ${JSON.stringify(body).slice(0, 200)}: ${status} ${text}`);
      if (path.startsWith('/api/')) assert.equal(status, 400, text);
    }
  });
});
