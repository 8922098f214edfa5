// Every way to demand a form of the output, through HTTP to a model on this machine: the output has the form, or the
// request is refused.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

interface Reply {
  choices: { text?: string; message?: { content: string } }[];
  error: { code: string; param: string; message: string };
}

let server: TestServer;
describe('constraints of the API', () => {
  before(async () => {
    server = await startTestServer();
  });

  async function send(path: string, body: object): Promise<Reply & { status: number }> {
    const response = await server.fetch(`/v1/${path}`, {
      json: { model: 'hermes3-8b', max_tokens: 60, ...body },
    });
    return { ...((await response.json()) as Reply), status: response.status };
  }

  const messages = [{ role: 'user', content: 'What is the capital of France?' }];
  const chat = (body: object) => send('chat/completions', { messages, ...body });
  const complete = (body: object) => send('completions', { prompt: 'The capital is', ...body });

  const textOf = ({ choices: [one] }: Reply) => one?.text ?? one?.message?.content ?? '';

  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' } },
    required: ['ok'],
    additionalProperties: false,
  };
  const isOk = /^\{\s*"ok"\s*:\s*(true|false)\s*\}$/;
  const choice = ['purple', 'green'];
  const gbnf = 'root ::= "(" root ")" | [xy]';

  const enforced: [string, object, RegExp][] = [
    ['structured_outputs.json', { structured_outputs: { json: schema } }, isOk],
    [
      'structured_outputs.json as text',
      { structured_outputs: { json: JSON.stringify(schema) } },
      isOk,
    ],
    [
      'structured_outputs.regex',
      { structured_outputs: { regex: '[0-9]{3}-[a-f]{2}' } },
      /^\d{3}-[a-f]{2}$/,
    ],
    ['structured_outputs.choice', { structured_outputs: { choice } }, /^(purple|green)$/],
    [
      'structured_outputs.json_object',
      { structured_outputs: { json_object: true }, max_tokens: 500 },
      /^\{/,
    ],
    [
      'structured_outputs.grammar',
      { structured_outputs: { grammar: gbnf } },
      /^(\(+[xy]\)+|[xy])$/,
    ],
    ['guided_grammar', { guided_grammar: gbnf }, /^(\(+[xy]\)+|[xy])$/],
    ['grammar', { grammar: 'root ::= "up" | "down" [0-9]{2}' }, /^(up|down\d\d)$/],
    ['ebnf', { ebnf: 'root ::= [a-c]+ "!"', max_tokens: 200 }, /^[abc]+!?$/],
    ['guided_json', { guided_json: schema }, isOk],
    ['guided_regex', { guided_regex: '(up|down){2}' }, /^(up|down){2}$/],
    ['guided_choice', { guided_choice: choice }, /^(purple|green)$/],
    ['regex', { regex: 'x+y' }, /^x+y?$/],
    ['json_schema', { json_schema: schema }, isOk],
    ['response_format with a schema', { response_format: { type: 'json_object', schema } }, isOk],
    [
      'response_format of type json_schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
      isOk,
    ],
  ];

  describe('a form of the output', () => {
    for (const [name, body, form] of enforced)
      test(`${name} is enforced for chats and completions`, async () => {
        for (const reply of [await chat(body), await complete(body)]) {
          assert.equal(reply.status, 200, JSON.stringify(reply));
          assert.match(textOf(reply), form);
        }
      });

    const endless = 'root ::= "a" root "b" | "a" root "c" | ""';
    const refused: [string, object, code: string, param: string][] = [
      [
        'structural tags',
        { structured_outputs: { structural_tag: '{}' } },
        'unsupported_parameter',
        'structured_outputs.structural_tag',
      ],
      [
        'a pattern with a backreference',
        { guided_regex: '(a)\\1' },
        'invalid_value',
        'guided_regex',
      ],
      ['a grammar that branches without end', { grammar: endless }, 'invalid_value', 'grammar'],
      [
        'a grammar without a root',
        { guided_grammar: 'a ::= "x"' },
        'invalid_value',
        'guided_grammar',
      ],
      ['a schema that is no JSON', { guided_json: '{' }, 'invalid_value', 'guided_json'],
      ['a wrong type', { guided_choice: 'yes' }, 'invalid_type', 'guided_choice'],
      ['no choice', { guided_choice: [] }, 'array_below_min_length', 'guided_choice'],
      [
        'two forms',
        { guided_choice: choice, response_format: { type: 'json_object' } },
        'invalid_value',
        'guided_choice',
      ],
      [
        'two forms in one member',
        { structured_outputs: { choice, regex: 'a' } },
        'invalid_value',
        'structured_outputs.choice',
      ],
      [
        'a schema that is missing',
        { response_format: { type: 'json_schema' } },
        'missing_required_parameter',
        'response_format.json_schema.schema',
      ],
    ];
    for (const [name, body, code, param] of refused)
      test(`${name} is refused for chats and completions`, async () => {
        for (const { status, error } of [await chat(body), await complete(body)])
          assert.deepEqual([status, error.code, error.param], [400, code, param], error.message);
      });

    test('beside a demanded tool call is refused', async () => {
      const tools = [{ type: 'function', function: { name: 'f' } }];
      const { status, error } = await chat({
        tools,
        tool_choice: 'required',
        guided_choice: choice,
      });
      assert.deepEqual([status, error.param], [400, 'guided_choice']);
    });

    test('goes to the backend that can enforce it, and is refused if none can', async (t) => {
      const upstreams = await Promise.all([startScriptedUpstream({}), startScriptedUpstream({})]);
      t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
      const [ollama, vllm] = upstreams;
      const backends = [
        { name: 'ollama', url: ollama.url, model: 'm', server: 'ollama' },
        { name: 'vllm', url: vllm.url, model: 'm', server: 'vllm' },
      ];
      const catalog = { 'hermes3-8b': { backends }, 'hermes3-70b': { backends: [backends[0]] } };
      const mixed = await startTestServer({
        config: { models: { catalog, health: { probe_seconds: 3600 } } as object },
      });
      t.after(() => mixed.stop());
      const ask = (model: string) =>
        mixed.fetch('/v1/chat/completions', { json: { model, messages, guided_choice: choice } });
      for (let round = 0; round < 4; round++)
        assert.equal((await ask('hermes3-8b')).headers.get('x-served-by'), 'vllm');
      const response = await ask('hermes3-70b');
      const { error } = (await response.json()) as Reply;
      assert.deepEqual(
        [response.status, error.code, error.param],
        [400, 'unsupported_parameter', 'guided_choice'],
      );
      assert.equal(ollama.requests.length, 0);
    });
  });
});
