// The inference API before any engine comes in: the model list, and every refusal of the contract.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { startTestServer, type TestServer } from '#test/support/server.ts';

// Seed 1.4, in its order.
const seedIds = [
  'deepseek-coder-v2-lite-instruct',
  'dracarys2-72b-instruct',
  'hermes3-405b',
  'hermes3-405b-fp8-128k',
  'hermes3-70b',
  'hermes3-8b',
  'lfm-40b',
  'llama3.1-405b-instruct-fp8',
  'llama3.1-70b-instruct-fp8',
  'llama3.1-8b-instruct',
  'llama3.2-3b-instruct',
  'llama3.1-nemotron-70b-instruct',
];

interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string | null };
}

describe('the inference surface', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });

  async function refusal(path: string, init: Parameters<TestServer['fetch']>[1] = {}) {
    const response = await server.fetch(path, init);
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
    assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f]{32}$/);
    const { error } = (await response.json()) as ErrorBody;
    assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
    return { ...error, status: response.status, headers: response.headers };
  }

  test('the list has the contract’s twelve ids in order, complete and constant', async () => {
    const list = (await (await server.fetch('/v1/models')).json()) as {
      object: string;
      data: { id: string; object: string; created: number; owned_by: string }[];
    };
    assert.equal(list.object, 'list');
    assert.deepEqual(
      list.data.map(({ id }) => id),
      seedIds,
    );
    for (const model of list.data) {
      assert.deepEqual(Object.keys(model), ['id', 'object', 'created', 'owned_by']);
      assert.equal(model.object, 'model');
      assert(Number.isInteger(model.created) && model.owned_by.length > 0);
      assert.deepEqual(await (await server.fetch(`/v1/models/${model.id}`)).json(), model);
    }
    assert.deepEqual(await (await server.fetch('/v1/models')).json(), list);
    const codex = await server.fetch('/v1/models?client_version=0.166.0');
    assert.deepEqual(await codex.json(), { ...list, models: [] });
  });

  test('the fallback id responds by name though it is not listed', async () => {
    const response = await server.fetch('/v1/models/hermes-3-llama-3.1-405b-fp8-128k');
    assert.equal(
      ((await response.json()) as { id: string }).id,
      'hermes-3-llama-3.1-405b-fp8-128k',
    );
  });

  test('an id with slashes is found as it is and encoded', async (t) => {
    const id = 'owner/family/name';
    const own = await startTestServer({
      config: { models: { catalog: { [id]: { context_window: 4096 } } } as object },
    });
    t.after(() => own.stop());
    for (const path of [id, encodeURIComponent(id)]) {
      const response = await own.fetch(`/v1/models/${path}`);
      assert.equal(((await response.json()) as { id: string }).id, id);
    }
    const client = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: own.key, maxRetries: 0 });
    assert.equal((await client.models.retrieve(id)).id, id);
    await assert.rejects(client.models.retrieve('owner/none'), OpenAI.NotFoundError);
  });

  test('the official client lists models and gets its own error classes', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });
    const page = await client.models.list();
    assert.deepEqual(
      page.data.map(({ id }) => id),
      seedIds,
    );
    await assert.rejects(client.models.retrieve('nope'), OpenAI.NotFoundError);
    const stranger = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.models.list(), (error) => {
      assert(error instanceof OpenAI.AuthenticationError);
      assert.equal(error.code, 'invalid_api_key');
      assert.match(error.message, /Incorrect API key provided: \*\*\*\./);
      return !error.message.includes('wrong.');
    });
  });

  test('a missing key, a wrong key and a malformed header get the contract’s errors', async () => {
    const none = await refusal('/v1/models', { headers: { authorization: '' } });
    assert.deepEqual([none.status, none.type, none.code], [401, 'invalid_request_error', null]);
    const key = 'secret_x_0123456789abcdef0123456789abcdef.AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH';
    const wrong = await refusal('/v1/models', { headers: { authorization: `Bearer ${key}` } });
    assert.deepEqual([wrong.status, wrong.code], [401, 'invalid_api_key']);
    assert.match(wrong.message, /^Incorrect API key provided: /);
    assert(wrong.message.includes('secret_x***HHHH') && !wrong.message.includes('0123456789'));
  });

  test('unknown paths and wrong methods are JSON', async () => {
    const path = await refusal('/v1/nothing');
    assert.deepEqual([path.status, path.code], [404, 'unknown_url']);
    const method = await refusal('/v1/models', { method: 'DELETE' });
    assert.deepEqual([method.status, method.code], [405, 'method_not_allowed']);
    assert.equal(method.headers.get('allow'), 'GET, HEAD');
    const broken = await refusal('/v1/models/%zz');
    assert.equal(broken.status, 404);
    const model = await refusal('/v1/models/unknown-model');
    assert.deepEqual([model.status, model.code, model.param], [404, 'model_not_found', 'model']);
  });

  test('a URL that can’t be decoded gets the error format of its API', async () => {
    const shapes = {
      '/v1/%zz': { error: ['code', 'message', 'param', 'type'] },
      '/rerank/%zz?a': { error: ['code', 'message', 'param', 'type'] },
      '/v1/messages/%zz': { error: ['details', 'message', 'type'], type: 'error' },
      '/api/%zz': { error: 'The URL of the request cannot be decoded.' },
      '/api/v1/%zz': { error: ['code', 'message'] },
      '/apix/%zz': { error: ['code', 'message', 'param'] },
    };
    for (const [path, shape] of Object.entries(shapes)) {
      const response = await server.fetch(path);
      const { error, ...rest } = (await response.json()) as { error: unknown };
      const shown = typeof error === 'string' ? error : Object.keys(error as object).sort();
      const id = response.headers.get('x-request-id');
      const isMessages = path.startsWith('/v1/messages');
      const expected = isMessages ? { ...shape, request_id: id } : shape;
      assert.deepEqual({ error: shown, ...rest }, expected, path);
    }
  });

  test('a body that is not JSON, of another type, or too large is refused by name', async () => {
    const send = (body: string | Buffer<ArrayBuffer>, type?: string) =>
      refusal('/v1/chat/completions', {
        method: 'POST',
        body,
        headers: type === undefined ? {} : { 'content-type': type },
      });
    const bad = await send('{"model":', 'application/json');
    assert.deepEqual([bad.status, bad.code], [400, 'invalid_json']);
    const empty = await send('', 'application/json');
    assert.deepEqual([empty.status, empty.code], [400, 'invalid_json']);
    const utf8 = await send(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 'application/json');
    assert.deepEqual([utf8.status, utf8.code], [400, 'invalid_json']);
    const deep = await send('['.repeat(5000) + ']'.repeat(5000), 'application/json');
    assert.deepEqual([deep.status, deep.code], [400, 'invalid_json']);
    const form = await send('model=x', 'application/x-www-form-urlencoded');
    assert.deepEqual([form.status, form.code], [415, 'unsupported_media_type']);
    const big = await send(`{"x":"${'a'.repeat(9 * 1024 * 1024)}"}`, 'application/json');
    assert.deepEqual([big.status, big.code], [413, 'request_too_large']);
  });

  const hello = [{ role: 'user', content: 'Hello' }];
  const chat = (body: object) =>
    refusal('/v1/chat/completions', { json: { model: 'hermes3-8b', messages: hello, ...body } });
  const complete = (body: object) =>
    refusal('/v1/completions', { json: { model: 'hermes3-8b', prompt: 'Hello', ...body } });

  const chatCases: [string, object, string, string][] = [
    ['no messages', { messages: undefined }, 'missing_required_parameter', 'messages'],
    ['empty messages', { messages: [] }, 'array_below_min_length', 'messages'],
    ['messages of a wrong type', { messages: 'hi' }, 'invalid_type', 'messages'],
    ['no model', { model: undefined }, 'missing_required_parameter', 'model'],
    ['a model of a wrong type', { model: 7 }, 'invalid_type', 'model'],
    [
      'a message without content',
      { messages: [...hello, { role: 'user' }] },
      'missing_required_parameter',
      'messages[1].content',
    ],
    [
      'a null user content',
      { messages: [{ role: 'user', content: null }] },
      'missing_required_parameter',
      'messages[0].content',
    ],
    [
      'a message without role',
      { messages: [{ content: 'x' }] },
      'missing_required_parameter',
      'messages[0].role',
    ],
    [
      'an unknown role',
      { messages: [{ role: 'robot', content: 'x' }] },
      'invalid_value',
      'messages[0].role',
    ],
    [
      'content of a wrong type',
      { messages: [{ role: 'user', content: 5 }] },
      'invalid_type',
      'messages[0].content',
    ],
    [
      'an image part',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'unsupported_content_type',
      'messages[0].content[0]',
    ],
    [
      'a text part without text',
      { messages: [{ role: 'user', content: [{ type: 'text' }] }] },
      'missing_required_parameter',
      'messages[0].content[0].text',
    ],
    [
      'a tool message without id',
      { messages: [{ role: 'tool', content: 'x' }] },
      'missing_required_parameter',
      'messages[0].tool_call_id',
    ],
    ['temperature too high', { temperature: 2.5 }, 'decimal_above_max_value', 'temperature'],
    ['temperature too low', { temperature: -1 }, 'decimal_below_min_value', 'temperature'],
    ['temperature as text', { temperature: '1' }, 'invalid_type', 'temperature'],
    ['n of 0', { n: 0 }, 'integer_below_min_value', 'n'],
    ['n of 129', { n: 129 }, 'integer_above_max_value', 'n'],
    ['a fractional max_tokens', { max_tokens: 1.5 }, 'invalid_type', 'max_tokens'],
    ['seventeen stops', { stop: Array(17).fill('x') }, 'array_above_max_length', 'stop'],
    ['a stop of a wrong type', { stop: 5 }, 'invalid_type', 'stop'],
    [
      'stream_options without stream',
      { stream_options: { include_usage: true } },
      'invalid_value',
      'stream_options',
    ],
    ['top_logprobs without logprobs', { top_logprobs: 2 }, 'invalid_value', 'top_logprobs'],
    [
      'top_logprobs of 21',
      { logprobs: true, top_logprobs: 21 },
      'integer_above_max_value',
      'top_logprobs',
    ],
    [
      'an unknown response format',
      { response_format: { type: 'xml' } },
      'invalid_value',
      'response_format.type',
    ],
    [
      'a schema format without schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'missing_required_parameter',
      'response_format.json_schema.schema',
    ],
    ['tool_choice without tools', { tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
    [
      'a tool without a name',
      { tools: [{ type: 'function', function: {} }] },
      'missing_required_parameter',
      'tools[0].function.name',
    ],
    [
      'an unknown tool chosen',
      {
        tools: [{ type: 'function', function: { name: 'a' } }],
        tool_choice: { type: 'function', function: { name: 'b' } },
      },
      'invalid_value',
      'tool_choice.function.name',
    ],
    ['a bias over 100', { logit_bias: { 5: 101 } }, 'decimal_above_max_value', 'logit_bias[5]'],
    ['a bias for no token', { logit_bias: { hello: 1 } }, 'invalid_value', 'logit_bias'],
    ['min over max tokens', { min_tokens: 9, max_tokens: 5 }, 'invalid_value', 'min_tokens'],
  ];
  for (const [name, body, code, param] of chatCases) {
    test(`chat: ${name} is refused with its parameter`, async () => {
      const error = await chat(body);
      assert.deepEqual([error.status, error.code, error.param], [400, code, param], error.message);
      assert.equal(error.type, 'invalid_request_error');
    });
  }

  const completionCases: [string, object, string, string][] = [
    ['no prompt', { prompt: undefined }, 'missing_required_parameter', 'prompt'],
    ['an empty list of prompts', { prompt: [] }, 'array_below_min_length', 'prompt'],
    ['a negative token id', { prompt: [-1] }, 'integer_below_min_value', 'prompt[0]'],
    ['logprobs of 6', { logprobs: 6 }, 'integer_above_max_value', 'logprobs'],
    ['best_of under n', { n: 3, best_of: 2 }, 'invalid_value', 'best_of'],
    ['best_of streamed', { best_of: 2, stream: true }, 'invalid_value', 'best_of'],
  ];
  for (const [name, body, code, param] of completionCases) {
    test(`completions: ${name} is refused with its parameter`, async () => {
      const error = await complete(body);
      assert.deepEqual([error.status, error.code, error.param], [400, code, param], error.message);
    });
  }

  test('an unknown model is a 404 that names the member', async () => {
    const error = await chat({ model: 'gpt-4o' });
    assert.deepEqual([error.status, error.code, error.param], [404, 'model_not_found', 'model']);
  });
});
