// Constraints on the output, before each kind of server: they arrive in the form that the server knows, or the request is
// refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { constraintMembers } from '#inference/constraint.ts';
import type { EngineError, Task } from '#inference/engine.ts';
import { toRequestBody } from '#inference/engines/upstream/request-body.ts';
import type { UpstreamServer } from '#inference/engines/upstream/servers.ts';
import { createUpstreamEngine } from '#inference/engines/upstream/upstream.ts';
import { chat, completion } from '#test/support/builtin.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

const schema = { type: 'object', properties: { a: { type: 'integer' } } };
const format = { type: 'json_schema', json_schema: { name: 'response', schema, strict: true } };
const gbnf = 'root ::= "a" | "b"';

type Members = Record<string, unknown>;

function sentBy(server: UpstreamServer, task: Task): Members {
  const sent = JSON.parse(
    String(toRequestBody(task, { model: 'm', server, url: 'http://10.0.0.1/v1' }, false)),
  ) as Members;
  return Object.fromEntries(
    Object.entries(sent).filter(([name]) =>
      (constraintMembers as readonly string[]).includes(name),
    ),
  );
}

const refused = 'refused';

/** What a client sends, and what each kind of server receives. */
const chats: [string, Members, Record<UpstreamServer, Members | typeof refused>][] = [
  [
    'a schema as vLLM has it',
    { guided_json: JSON.stringify(schema) },
    {
      vllm: { structured_outputs: { json: schema }, guided_json: schema },
      sglang: { response_format: format },
      'llama-server': { response_format: format },
      ollama: { response_format: format },
      openai: { response_format: format },
    },
  ],
  [
    'an object with a schema as llama-server has it',
    { response_format: { type: 'json_object', schema } },
    {
      vllm: { response_format: format },
      sglang: { response_format: format },
      'llama-server': { response_format: format },
      ollama: { response_format: format },
      openai: { response_format: format },
    },
  ],
  [
    'a regular expression as SGLang has it',
    { regex: 'a|b' },
    {
      vllm: { structured_outputs: { regex: 'a|b' }, guided_regex: 'a|b' },
      sglang: { regex: 'a|b' },
      'llama-server': refused,
      ollama: refused,
      openai: refused,
    },
  ],
  [
    'a choice as vLLM has it, with an option of its own',
    { structured_outputs: { choice: ['a.', '"b"\n'], disable_any_whitespace: true } },
    {
      vllm: {
        structured_outputs: { choice: ['a.', '"b"\n'], disable_any_whitespace: true },
        guided_choice: ['a.', '"b"\n'],
      },
      sglang: { regex: '(a\\.|"b"\n)' },
      'llama-server': { grammar: 'root ::= "a." | "\\"b\\"\\n"' },
      ollama: refused,
      openai: refused,
    },
  ],
  [
    'a grammar as llama-server has it',
    { grammar: gbnf },
    {
      vllm: { structured_outputs: { grammar: gbnf }, guided_grammar: gbnf },
      sglang: { ebnf: gbnf },
      'llama-server': { grammar: gbnf },
      ollama: refused,
      openai: refused,
    },
  ],
  [
    'structural tags',
    { structured_outputs: { structural_tag: '{}' }, response_format: { type: 'text' } },
    {
      vllm: { structured_outputs: { structural_tag: '{}' } },
      sglang: refused,
      'llama-server': refused,
      ollama: refused,
      openai: refused,
    },
  ],
];

const completions: typeof chats = [
  [
    'a schema of a completion',
    { response_format: format },
    {
      vllm: { response_format: format },
      sglang: { json_schema: JSON.stringify(schema) },
      'llama-server': { json_schema: schema },
      ollama: refused,
      openai: refused,
    },
  ],
  [
    'an object of a completion',
    { response_format: { type: 'json_object' } },
    {
      vllm: { response_format: { type: 'json_object' } },
      sglang: { json_schema: '{"type":"object"}' },
      'llama-server': { json_schema: { type: 'object' } },
      ollama: refused,
      openai: refused,
    },
  ],
];

describe('a constraint on the output', () => {
  const cases = [
    ...chats.map(([name, body, expected]) => ({ name, task: chat(body), expected })),
    ...completions.map(([name, body, expected]) => ({ name, task: completion(body), expected })),
  ];
  for (const { name, task, expected } of cases)
    for (const [kind, members] of Object.entries(expected)) {
      const server = kind as UpstreamServer;
      test(`${name}, to ${server}`, async (t) => {
        const engine = createUpstreamEngine(upstreamOptions('http://127.0.0.1:9/v1', { server }));
        t.after(() => engine.close());
        const refusal = engine.refusalOf?.(task) ?? null;
        if (members !== refused) {
          assert.deepEqual(sentBy(server, task), members);
          assert.equal(refusal, null);
          return;
        }
        const isRefusal = ({ failure, code, message }: EngineError) =>
          failure === 'rejected' &&
          code === 'unsupported_parameter' &&
          /can't enforce/.test(message);
        assert.throws(() => sentBy(server, task), isRefusal);
        assert(refusal !== null && isRefusal(refusal));
      });
    }

  test('that is absent leaves the request unchanged', () => {
    const body = { response_format: { type: 'text' as const } };
    assert.deepEqual(sentBy('ollama', chat(body)), body);
    assert.deepEqual(sentBy('ollama', completion({})), {});
  });
});
