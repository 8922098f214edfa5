// `functions` and `function_call`, the predecessors of tools: the official client gets what OpenAI's API gave it, from a
// model on this machine and from an upstream that knows only tools.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { before, describe, type TestContext, test } from 'node:test';
import OpenAI from 'openai';
import { listen } from '#test/support/listen.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const parameters = {
  type: 'object',
  properties: { city: { type: 'string', maxLength: 20 } },
  required: ['city'],
  additionalProperties: false,
};
const functions = [{ name: 'get_weather', description: 'Get the weather of a city.', parameters }];
const messages = [{ role: 'user' as const, content: 'What is the weather in Paris?' }];

let own: TestServer;
/** A server whose backend is the other one. */
let forwarding: TestServer;
describe('functions', () => {
  before(async () => {
    own = await startTestServer();
    forwarding = await startTestServer({ config: toBackend(`${own.url}/v1`, own.key) });
  });

  const toBackend = (url: string, api_key: string) => {
    const backends = [{ name: 'other', url, api_key, model, server: 'openai' }];
    return {
      models: { catalog: { [model]: { backends } }, health: { probe_seconds: 3600 } } as object,
    };
  };

  const clientOf = ({ url, key }: TestServer) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

  for (const [name, server] of [
    ['a model on this machine', () => own],
    ['an upstream', () => forwarding],
  ] as const)
    describe(`functions of ${name}`, () => {
      const asked = {
        model,
        messages,
        functions,
        function_call: { name: 'get_weather' },
        temperature: 0,
        max_tokens: 100,
      };

      test('are called in a plain response', async () => {
        const answer = await clientOf(server()).chat.completions.create(asked);
        const [choice] = answer.choices;
        const call = choice?.message.function_call;
        assert.equal(call?.name, 'get_weather');
        assert.equal(typeof JSON.parse(call?.arguments ?? '').city, 'string');
        assert.equal(choice?.finish_reason, 'function_call');
        assert.equal(choice?.message.tool_calls, null);
      });

      test('are called in a stream', async () => {
        const stream = await clientOf(server()).chat.completions.create({ ...asked, stream: true });
        const events = [];
        for await (const event of stream) events.push(event);
        const deltas = events.flatMap(({ choices }) => choices.map(({ delta }) => delta));
        assert(deltas.every((delta) => !('tool_calls' in delta)));
        const calls = deltas.flatMap(({ function_call: call }) => call ?? []);
        assert.deepEqual(
          calls.flatMap((call) => call.name ?? []),
          ['get_weather'],
        );
        const text = calls.map((call) => call.arguments ?? '').join('');
        assert.equal(typeof JSON.parse(text).city, 'string');
        assert.equal(events.at(-1)?.choices[0]?.finish_reason, 'function_call');
        const runner = clientOf(server()).chat.completions.stream(asked);
        const { choices } = await runner.finalChatCompletion();
        assert.equal(choices[0]?.message.function_call?.name, 'get_weather');
      });

      test('and their results are part of the conversation', async () => {
        const answer = await clientOf(server()).chat.completions.create({
          ...asked,
          function_call: 'none',
          messages: [
            ...messages,
            {
              role: 'assistant',
              content: null,
              function_call: { name: 'get_weather', arguments: '{"city":"Paris"}' },
            },
            { role: 'function', name: 'get_weather', content: 'sunny' },
          ],
        });
        assert.equal(typeof answer.choices[0]?.message.content, 'string');
        assert.notEqual(answer.choices[0]?.finish_reason, 'function_call');
      });

      const wrong: [string, object, string][] = [
        ['beside tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, 'functions'],
        ['a call of another', { function_call: { name: 'other' } }, 'function_call.name'],
        ['a call without any', { functions: null }, 'function_call'],
        ['one name twice', { functions: [functions[0], functions[0]] }, 'functions[1].name'],
        ['a wrong name', { functions: [{ name: 'a b' }] }, 'functions[0].name'],
        [
          'a result without a name',
          { messages: [...messages, { role: 'function', content: 'x' }] },
          'messages[1].name',
        ],
      ];
      for (const [what, body, param] of wrong)
        test(`are refused: ${what}`, async () => {
          const response = await server().fetch('/v1/chat/completions', {
            json: { ...asked, ...body },
          });
          const { error } = (await response.json()) as { error: { param: string } };
          assert.deepEqual([response.status, error.param], [400, param]);
        });
    });

  /** Answers every chat with one tool call, and keeps the last request. */
  async function startCaller(t: TestContext, argumentsText: string) {
    const seen: Record<string, unknown>[] = [];
    const upstream = createServer(async (request, response) => {
      seen.push((await json(request)) as Record<string, unknown>);
      const call = {
        id: 'call_1',
        type: 'function',
        function: { name: 'f', arguments: argumentsText },
      };
      const message = {
        role: 'assistant',
        content: null,
        tool_calls: [call, { ...call, id: 'call_2' }],
      };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage }),
      );
    });
    const port = await listen(t, upstream);
    const server = await startTestServer({
      config: toBackend(`http://127.0.0.1:${port}/v1`, 'key'),
    });
    t.after(() => server.stop());
    return { server, seen };
  }

  test('an upstream gets tools and nothing of the older form', async (t) => {
    const { server, seen } = await startCaller(t, '{}');
    const call = { name: 'f', arguments: '{"a":1}' };
    const answer = await clientOf(server).chat.completions.create({
      model,
      functions: [{ name: 'f', parameters }],
      messages: [
        ...messages,
        { role: 'assistant', content: null, function_call: call },
        { role: 'function', name: 'f', content: '2' },
      ],
    });
    assert.deepEqual(answer.choices[0]?.message.function_call, { name: 'f', arguments: '{}' });
    assert.deepEqual(seen[0], {
      model,
      messages: [
        ...messages,
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: '000000001', type: 'function', function: call }],
        },
        { role: 'tool', name: 'f', content: '2', tool_call_id: '000000001' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
      parallel_tool_calls: false,
    });
  });

  test('large requests and responses are turned as well', async (t) => {
    const long = JSON.stringify({ text: 'x'.repeat(400_000) });
    const { server, seen } = await startCaller(t, long);
    const answer = await clientOf(server).chat.completions.create({
      model,
      functions: [{ name: 'f' }],
      messages: [
        { role: 'user', content: 'y'.repeat(300_000) },
        { role: 'function', name: 'f', content: '2' },
      ],
    });
    assert.equal(answer.choices[0]?.message.function_call?.arguments, long);
    const sent = (seen[0]?.messages ?? []) as { role: string }[];
    assert.deepEqual(
      sent.map(({ role }) => role),
      ['user', 'tool'],
    );
  });
});
