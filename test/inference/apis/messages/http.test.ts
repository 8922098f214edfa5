// The Messages API over HTTP, with Anthropic's own client: before an upstream that says what a test tells it to, and with
// the built-in model.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import Anthropic, {
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
} from '@anthropic-ai/sdk';
import { type SayingUpstream, startSayingUpstream } from '#test/support/saying-upstream.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const messages = [{ role: 'user' as const, content: 'List the files.' }];
const bash = {
  name: 'Bash',
  description: 'Runs a command.',
  input_schema: { type: 'object' as const, properties: { command: { type: 'string' } } },
};
const call = {
  tool_calls: [
    {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name: 'Bash', arguments: '{"command":"ls"}' },
    },
  ],
};

describe('the Messages API', () => {
  let server: TestServer;
  let upstream: SayingUpstream;
  let client: Anthropic;
  before(async () => {
    upstream = await startSayingUpstream();
    const backends = [{ name: 'said', url: upstream.url, model: 'said' }];
    const catalog = { agent: { context_window: 8192, backends } };
    server = await startTestServer({
      config: { models: { catalog, health: { probe_seconds: 3600 } } as object },
    });
    client = newClient(server.key);
  });

  const newClient = (apiKey: string) =>
    new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });

  test('a text arrives whole and as a stream, with the id of the request', async () => {
    upstream.say('Two ', 'files.');
    const body = { model: 'agent', max_tokens: 100, messages };
    const { data, response } = await client.messages.create(body).withResponse();
    assert.deepEqual(data.content, [{ type: 'text', text: 'Two files.' }]);
    assert.equal(data.stop_reason, 'end_turn');
    assert.equal(data.usage.input_tokens, 10);
    const id = response.headers.get('x-request-id');
    assert.equal(data.id, `msg_${id}`);
    assert.equal(response.headers.get('request-id'), id);
    const streamed = await client.messages.stream(body).finalMessage();
    assert.deepEqual(streamed.content, data.content);
    assert.equal(streamed.usage.output_tokens, 2);
  });

  test('thoughts and a call arrive whole and as a stream, and come back with the result', async () => {
    upstream.say({ reasoning_content: 'Look ' }, { reasoning_content: 'first.' }, 'I look.', call);
    const body = { model: 'agent', max_tokens: 100, messages, tools: [bash] };
    const whole = await client.messages.create(body);
    const streamed = await client.messages.stream(body).finalMessage();
    for (const { content, stop_reason, id } of [whole, streamed]) {
      assert.equal(stop_reason, 'tool_use');
      assert.deepEqual(content, [
        { type: 'thinking', thinking: 'Look first.', signature: id },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'call_1', name: 'Bash', input: { command: 'ls' } },
      ]);
    }
    upstream.say('There is a.txt.');
    const result = { type: 'tool_result' as const, tool_use_id: 'call_1', content: 'a.txt' };
    const { content } = await client.messages.create({
      ...body,
      messages: [
        ...messages,
        { role: 'assistant', content: streamed.content },
        { role: 'user', content: [result] },
      ],
    });
    assert.deepEqual(content, [{ type: 'text', text: 'There is a.txt.' }]);
    const sent = upstream.requests.at(-1);
    assert.deepEqual(
      sent?.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool'],
    );
    assert.deepEqual(sent?.messages.at(-1), {
      role: 'tool',
      tool_call_id: 'call_1',
      content: 'a.txt',
    });
  });

  test('an image reaches the upstream as a data URL', async () => {
    upstream.say('A cat.');
    const source = { type: 'base64' as const, media_type: 'image/png' as const, data: 'iVBORw0K' };
    await client.messages.create({
      model: 'agent',
      max_tokens: 100,
      messages: [{ role: 'user', content: [{ type: 'image', source }] }],
    });
    assert.deepEqual(upstream.requests.at(-1)?.messages[0]?.content, [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0K' } },
    ]);
  });

  test('what Claude Code sends besides is ignored', async () => {
    upstream.say('Yes.');
    const response = await server.fetch('/v1/messages?beta=true', {
      headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'from-the-future-2027' },
      json: {
        model: 'agent',
        max_tokens: 4000,
        thinking: { type: 'adaptive' },
        context_management: { edits: [] },
        output_config: { effort: 'high' },
        metadata: { user_id: '{"session_id":"a"}' },
        messages: [...messages, { role: 'system', content: 'It is noon.' }],
      },
    });
    assert.equal(response.status, 200);
    const roles = upstream.requests.at(-1)?.messages.map(({ role }) => role);
    assert.deepEqual(roles, ['user', 'system']);
  });

  test('errors have Anthropic’s format and the id of the request', async () => {
    const body = { model: 'agent', max_tokens: 100, messages };
    const wrongKey = newClient('wrong').messages.create(body);
    await assert.rejects(wrongKey, (error) => {
      assert(error instanceof AuthenticationError);
      assert.equal(error.type, 'authentication_error');
      assert.match(error.requestID ?? '', /^[0-9a-f]{32}$/);
      assert.deepEqual(Object.keys(error.error as object), ['type', 'error', 'request_id']);
      return true;
    });
    const unknown = client.messages.create({ ...body, model: 'none' });
    await assert.rejects(unknown, (error) => {
      assert(error instanceof NotFoundError);
      assert.equal(error.type, 'not_found_error');
      assert.equal(error.errorCode, 'model_not_found');
      return true;
    });
    const hot = { ...body, temperature: 9 };
    await assert.rejects(client.messages.create(hot), (error) => {
      assert(error instanceof BadRequestError);
      assert.match(error.apiMessage ?? '', /temperature/);
      return true;
    });
    const long = client.messages.create({
      ...body,
      model: 'hermes3-8b',
      messages: [{ role: 'user', content: 'word '.repeat(140_000) }],
    });
    await assert.rejects(long, (error) => {
      assert(error instanceof BadRequestError);
      assert.match(
        error.apiMessage ?? '',
        /^prompt is too long: 1400\d\d tokens > 131072 maximum$/,
      );
      return true;
    });
  });

  test('an unknown path, a wrong method and an unreadable body have the same format', async () => {
    const requests: [path: string, init: RequestInit, status: number, type: string][] = [
      ['/v1/messages/batches', { method: 'POST' }, 404, 'not_found_error'],
      ['/v1/messages', { method: 'GET' }, 405, 'invalid_request_error'],
      [
        '/v1/messages',
        { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } },
        400,
        'invalid_request_error',
      ],
    ];
    for (const [path, init, status, type] of requests) {
      const response = await server.fetch(path, init);
      const body = (await response.json()) as Anthropic.ErrorResponse;
      assert.equal(response.status, status, path);
      assert.equal(body.type, 'error');
      assert.equal(body.error.type, type);
      assert.equal(body.request_id, response.headers.get('x-request-id'));
    }
  });

  test('HEAD / answers at once', async () => {
    const response = await fetch(`${server.url}/`, { method: 'HEAD', redirect: 'error' });
    assert.equal(response.status, 200);
  });
});

test('the built-in model counts what it reads, and stops at a stop sequence', async () => {
  const server = await startTestServer();
  const client = new Anthropic({ baseURL: server.url, authToken: server.key, apiKey: null });
  const body = { model: 'hermes3-8b', messages, temperature: 0 };
  const counted = await client.messages.countTokens(body);
  const whole = await client.messages.create({ ...body, max_tokens: 20 });
  assert.equal(
    whole.usage.input_tokens + (whole.usage.cache_read_input_tokens ?? 0),
    counted.input_tokens,
  );
  const stream = client.messages.stream({ ...body, max_tokens: 20 });
  let started = 0;
  stream.on('streamEvent', (event) => {
    if (event.type !== 'message_start') return;
    const { input_tokens, cache_read_input_tokens } = event.message.usage;
    started = input_tokens + (cache_read_input_tokens ?? 0);
  });
  const { content } = await stream.finalMessage();
  assert.equal(started, counted.input_tokens);
  const [first] = content;
  assert(first?.type === 'text');
  const stop = first.text.trim().split(' ')[1] as string;
  const stopped = await client.messages.create({ ...body, max_tokens: 20, stop_sequences: [stop] });
  assert.equal(stopped.stop_reason, 'stop_sequence');
  assert.equal(stopped.stop_sequence, stop);
});

test('a message has a usage row, and a count has none', async () => {
  const server = await startTestServer();
  const owner = await server.join();
  const client = new Anthropic({ baseURL: server.url, apiKey: server.key });
  const body = { model: 'hermes3-8b', messages };
  const bare = await client.messages.countTokens(body);
  const withTools = await client.messages.countTokens({ ...body, tools: [bash] });
  assert(withTools.input_tokens > bare.input_tokens + 10);
  await client.messages.create({ ...body, max_tokens: 5 });
  const rows = await until('the row is written', async () => {
    const response = await owner('/dashboard/api/usage/requests?limit=100');
    const { data } = (await response.json()) as { data: { operation: string; status: string }[] };
    return data[0]?.status === 'done' ? data : undefined;
  });
  assert.deepEqual(
    rows.map(({ operation }) => operation),
    ['messages'],
  );
});

test('a limit is a 429 that says when to try again, for messages and for counts', async () => {
  const server = await startTestServer();
  const owner = await server.join();
  const limits = { requests_per_minute: 1 };
  const made = await owner('/dashboard/api/api-keys', { json: { label: 'slow', limits } });
  const { key } = (await made.json()) as { key: string };
  const client = new Anthropic({ baseURL: server.url, apiKey: key, maxRetries: 0 });
  const body = { model: 'hermes3-8b', messages };
  await client.messages.countTokens(body);
  for (const ask of [
    () => client.messages.countTokens(body),
    () => client.messages.create({ ...body, max_tokens: 5 }),
  ]) {
    await assert.rejects(ask, (error) => {
      assert(error instanceof RateLimitError);
      assert.equal(error.type, 'rate_limit_error');
      assert(Number(error.headers?.get('retry-after')) > 0);
      return true;
    });
  }
});
