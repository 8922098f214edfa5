// The Responses API over HTTP, by OpenAI's own package: against the built-in model, and against upstreams that think,
// call tools and fail.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { z } from 'zod';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { checkResponseEvents, type ResponseEvent } from '#test/support/response-events.ts';
import { type SayingUpstream, startSayingUpstream } from '#test/support/saying-upstream.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const paris = 'The capital of France is Paris.';
const input = 'What is the capital of France?';

const toClient = (server: TestServer) =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });

describe('the built-in model', () => {
  let client: OpenAI;
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
    client = toClient(server);
  });

  test('a response, whole and streamed', async () => {
    const whole = await client.responses.create({ model, input, temperature: 0 });
    assert.equal(whole.output_text, paris);
    assert.equal(whole.status, 'completed');
    assert.match(whole.id, /^resp_[0-9a-f]{32}$/);
    assert.match(whole.output[0]?.id ?? '', /^msg_/);
    assert.ok((whole.usage?.input_tokens ?? 0) > 0);
    const events: ResponseStreamEvent[] = [];
    const stream = client.responses.stream({ model, input, temperature: 0 });
    for await (const event of stream) events.push(event);
    const final = await stream.finalResponse();
    assert.equal(final.output_text, paris);
    const checked = checkResponseEvents(events as unknown as ResponseEvent[]);
    assert.equal(checked.usage?.output_tokens, whole.usage?.output_tokens);
  });

  test('a schema is kept, and parsed', async () => {
    const City = z.object({
      name: z.string().max(20),
      population: z.number().int().min(0).max(9_999_999),
    });
    const parsed = await client.responses.parse({
      model,
      input: 'Describe Paris as JSON.',
      text: { format: zodTextFormat(City, 'city') },
      temperature: 0,
      max_output_tokens: 200,
    });
    assert.equal(typeof parsed.output_parsed?.name, 'string');
  });

  test('a function that is required is called', async () => {
    const { output } = await client.responses.create({
      model,
      input: 'What is the weather in Paris?',
      tool_choice: { type: 'function', name: 'get_weather' },
      tools: [
        {
          type: 'function',
          name: 'get_weather',
          strict: false,
          parameters: {
            type: 'object',
            properties: { city: { type: 'string', maxLength: 20 } },
            required: ['city'],
            additionalProperties: false,
          },
        },
      ],
      temperature: 0,
    });
    const [call] = output;
    assert.equal(call?.type, 'function_call');
    assert.equal(call.name, 'get_weather');
    assert.equal(typeof JSON.parse(call.arguments).city, 'string');
  });

  test('a regular expression of a custom tool is kept', async () => {
    const { output } = await client.responses.create({
      model,
      input: 'Dial a number.',
      tool_choice: { type: 'custom', name: 'dial' },
      tools: [
        {
          type: 'custom',
          name: 'dial',
          format: { type: 'grammar', syntax: 'regex', definition: '[0-9]{3}-[0-9]{4}' },
        },
      ],
    });
    const [call] = output;
    assert.equal(call?.type, 'custom_tool_call');
    assert.match(call.input, /^[0-9]{3}-[0-9]{4}$/);
  });

  test('an empty input is answered, and a maximum is reduced to what fits', async () => {
    const empty = await client.responses.create({ model, input: [], max_output_tokens: 1 });
    assert.equal(empty.status, 'incomplete');
    assert.deepEqual(empty.incomplete_details, { reason: 'max_output_tokens' });
    const large = await client.responses.create({
      model,
      input,
      max_output_tokens: 1_000_000,
      temperature: 0,
    });
    assert.equal(large.output_text, paris);
  });

  test('logprobs are sent if they are asked for', async () => {
    const { output } = await client.responses.create({
      model,
      input,
      temperature: 0,
      top_logprobs: 2,
      include: ['message.output_text.logprobs'],
    });
    const [message] = output;
    const part = message?.type === 'message' ? message.content[0] : undefined;
    assert.ok(part?.type === 'output_text');
    assert.equal(part.logprobs?.map(({ token }) => token).join(''), paris);
    assert.equal(part.logprobs?.[0]?.top_logprobs.length, 2);
  });

  test('a prompt that is too long fails inside a stream, and as an error without one', async () => {
    const long = 'mill '.repeat(200_000);
    await assert.rejects(
      client.responses.create({ model, input: long }),
      (error: { status: number; code: string; param: string }) =>
        error.status === 400 && error.code === 'context_length_exceeded' && error.param === 'input',
    );
    const events: ResponseEvent[] = [];
    for await (const event of await client.responses.create({ model, input: long, stream: true })) {
      events.push(event as unknown as ResponseEvent);
    }
    assert.equal(checkResponseEvents(events).error?.code, 'context_length_exceeded');
  });

  test('the oldest items are dropped if the request allows it', async () => {
    const turn = { role: 'user' as const, content: 'mill '.repeat(50_000) };
    const long = [turn, turn, turn, turn, { role: 'user' as const, content: input }];
    const fits = await client.responses.create({
      model,
      input: long,
      truncation: 'auto',
      temperature: 0,
    });
    assert.equal(fits.output_text, paris);
    await assert.rejects(client.responses.create({ model, input: long }), /maximum context length/);
  });

  test('a conversation is compacted, and continued from there', async () => {
    const compacted = await client.responses.compact({
      model,
      input: [
        { role: 'user', content: input },
        { role: 'assistant', content: paris },
      ],
    });
    assert.equal(compacted.object, 'response.compaction');
    assert.deepEqual(
      compacted.output.map(({ type }) => type),
      ['message', 'compaction'],
    );
    const next = await client.responses.create({
      model,
      input: [
        ...(compacted.output as OpenAI.Responses.ResponseInputItem[]),
        { role: 'user', content: input },
      ],
    });
    assert.equal(next.status, 'completed');
  });

  test('a prompt is counted as it would be billed', async () => {
    const prompt = { model, input, instructions: 'Be brief.' };
    const counted = await client.responses.inputTokens.count(prompt);
    const { usage } = await client.responses.create(prompt);
    assert.deepEqual(counted, {
      object: 'response.input_tokens',
      input_tokens: usage?.input_tokens,
    });
  });

  test('bad requests have OpenAI’s errors', async () => {
    const bad: [object, number, string | null][] = [
      [{ model, input: 5 }, 400, 'input'],
      [{ model, input, conversation: 'conv_1' }, 400, 'conversation'],
      [{ model: 'nope', input }, 404, 'model'],
      [{ model, input: [{ type: 'message', role: 'user' }] }, 400, 'input[0].content'],
      [{ model, input, metadata: { a: 1 } }, 400, 'metadata.a'],
      [{ model, input, previous_response_id: 'resp_unknown' }, 400, 'previous_response_id'],
    ];
    for (const [json, status, param] of bad) {
      const response = await server.fetch('/v1/responses', { json });
      const { error } = (await response.json()) as { error: { param: string; message: string } };
      assert.deepEqual([response.status, error.param], [status, param], error.message);
    }
  });
});

describe('an upstream that thinks and calls tools', () => {
  let client: OpenAI;
  let upstream: SayingUpstream;
  before(async () => {
    upstream = await startSayingUpstream();
    const backends = [{ name: 'said', url: upstream.url, model: 'said', server: 'vllm' }];
    const catalog = { [gatewayModel]: { backends } };
    const server = await startTestServer({
      config: { models: { catalog, health: { probe_seconds: 3600 } } as object },
    });
    client = toClient(server);
  });

  test('thoughts come back sealed, and only to the account they belong to', async () => {
    upstream.say({ reasoning_content: 'Hm, ' }, { reasoning_content: 'yes.' }, 'Yes.');
    const stream = client.responses.stream({
      model,
      input: 'Sure?',
      store: false,
      include: ['reasoning.encrypted_content'],
    });
    const { output } = await stream.finalResponse();
    const [thoughts, answer] = output;
    assert.ok(thoughts?.type === 'reasoning' && answer?.type === 'message');
    assert.deepEqual(thoughts.content, [{ type: 'reasoning_text', text: 'Hm, yes.' }]);
    const { content: _, ...sealed } = thoughts;
    const foreign = { ...sealed, encrypted_content: 'Z2FyYmFnZQ==' };
    await client.responses
      .stream({
        model,
        store: false,
        input: [
          { role: 'user', content: 'Sure?' },
          sealed,
          foreign,
          answer,
          { role: 'user', content: 'Really?' },
        ],
      })
      .finalResponse();
    assert.deepEqual(upstream.requests.at(-1)?.messages, [
      { role: 'user', content: 'Sure?' },
      { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm, yes.' },
      { role: 'user', content: 'Really?' },
    ]);
  });

  test('calls have the kind of their tool, and never leak as text', async () => {
    const piece = (index: number, part: object, more: object = {}) => ({
      tool_calls: [{ index, ...more, function: part }],
    });
    upstream.say(
      piece(0, { arguments: '' }, { id: 'call_a', type: 'function' }),
      piece(0, { name: 'agents__spawn', arguments: '{"a":' }),
      piece(0, { arguments: '1}' }),
      piece(1, { name: 'apply_patch', arguments: '{"input": "*** Begin\\n' }, { id: 'call_b' }),
      piece(1, { arguments: 'x"}' }),
      piece(2, { arguments: '{}' }, { id: 'call_c' }),
    );
    const stream = client.responses.stream({
      model,
      input: 'Work',
      tools: [
        {
          type: 'namespace',
          name: 'agents',
          description: 'Agents',
          tools: [{ type: 'function', name: 'spawn' }],
        },
        { type: 'custom', name: 'apply_patch' },
        { type: 'web_search' },
      ],
    });
    const { output, output_text } = await stream.finalResponse();
    assert.equal(output_text, '');
    const shown = output.map((item) => ({ ...item, id: undefined, parsed_arguments: undefined }));
    assert.deepEqual(JSON.parse(JSON.stringify(shown)), [
      {
        type: 'function_call',
        status: 'completed',
        call_id: 'call_a',
        name: 'spawn',
        namespace: 'agents',
        arguments: '{"a":1}',
      },
      {
        type: 'custom_tool_call',
        status: 'completed',
        call_id: 'call_b',
        name: 'apply_patch',
        input: '*** Begin\nx',
      },
      { type: 'function_call', status: 'completed', call_id: 'call_c', name: '', arguments: '{}' },
    ]);
  });
});

test('a backend that is overloaded is a 503 that Codex retries', async (context) => {
  const gateway = await startGateway(context, { upstreams: [{ behaviour: 'too-many-requests' }] });
  const response = await gateway.server.fetch('/v1/responses', {
    json: { model: gatewayModel, input: 'Go', stream: true },
  });
  const { error } = (await response.json()) as { error: { code: string } };
  assert.deepEqual([response.status, error.code], [503, 'server_is_overloaded']);
});

test('a stream moves to another backend in the middle, and has every word once', async (context) => {
  const gateway = await startGateway(context, {
    upstreams: [{ behaviour: 'dies-after-first-chunk', words: 20 }, { words: 20 }],
  });
  const whole = await toClient(gateway.server).responses.create({
    model: gatewayModel,
    input: 'Go',
  });
  const texts: string[] = [];
  for (let round = 0; round < 3; round++) {
    const stream = toClient(gateway.server).responses.stream({ model: gatewayModel, input: 'Go' });
    texts.push((await stream.finalResponse()).output_text);
  }
  assert.deepEqual(new Set(texts), new Set([whole.output_text]));
});

test('a stream that dies everywhere ends with response.failed', async (context) => {
  const gateway = await startGateway(context, { upstreams: [{ behaviour: 'fails-in-stream' }] });
  const events: ResponseEvent[] = [];
  const stream = await toClient(gateway.server).responses.create({
    model: gatewayModel,
    input: 'Go',
    stream: true,
  });
  for await (const event of stream) events.push(event as unknown as ResponseEvent);
  assert.equal(checkResponseEvents(events).error?.code, 'upstream_error');
});
