// The grammars on the real engine: llama.cpp takes them, and a tiny model that has no idea of the task
// writes valid JSON under them, at temperature 0 and at 1.5.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { jsonObjectGrammar, toGrammar } from '#inference/engines/local/grammar/schema-compiler.ts';
import { toToolGrammar } from '#inference/engines/local/grammar-thread/tool-grammar.ts';
import { grammarCases } from '#test/support/grammar/cases.ts';
import type { EngineOutcome, EngineTask } from '#test/support/grammar/engine-child.ts';
import { createValidator } from '#test/support/grammar/json-validator.ts';

const tools = [
  {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 }, unit: { enum: ['c', 'f'] } },
      required: ['city'],
    },
  },
  { name: 'now' },
];
const toolSchema = {
  oneOf: tools.map(({ name, parameters }) => ({
    type: 'object',
    properties: {
      name: { const: name },
      arguments: parameters ?? { type: 'object', maxProperties: 0 },
    },
    required: ['name', 'arguments'],
    additionalProperties: false,
  })),
};
const large = {
  type: 'object',
  properties: {
    text: { type: 'string', maxLength: 900_000 },
    list: { type: 'array', maxItems: 7000 },
  },
  required: ['text'],
};

const subjects = [
  ...grammarCases.map((each) => ({ ...each, grammar: toGrammar(each.schema) })),
  {
    name: 'any object',
    schema: { type: 'object' },
    grammar: jsonObjectGrammar,
    accepts: ['{}', '{"a": {"b": [1, "\\n", true]}, "ü": null}'],
    rejects: ['[]', '{"a"}', '{} '],
  },
  {
    name: 'large bounds',
    schema: large,
    grammar: toGrammar(large),
    accepts: [`{"text": "${'x'.repeat(20_000)}"}`],
    rejects: ['{"text": "x", "list": [,]}'],
  },
];
const toolCalls = [{ parallel: false }, { parallel: true }].map((options) => ({
  options,
  grammar: toToolGrammar(tools, options),
  accepts: [],
  rejects: [],
}));

const temperatures = [0, 1.5];
let outcomes: EngineOutcome[] = [];

describe('a grammar in the engine', () => {
  before(async () => {
    const file = fileURLToPath(
      new URL('../../../../support/grammar/engine-child.ts', import.meta.url),
    );
    const child = fork(file, { env: { ...process.env, UV_THREADPOOL_SIZE: '1' } });
    const failed = once(child, 'exit').then(([code]) => {
      throw new Error(`the engine ended with ${code}`);
    });
    failed.catch(() => {});
    await Promise.race([once(child, 'message'), failed]);
    const tasks = [...subjects, ...toolCalls].flatMap(({ grammar, accepts, rejects }) =>
      temperatures.map(
        (temperature): EngineTask => ({
          grammar,
          temperature,
          prompt: 'Answer in JSON.',
          maxTokens: 160,
          texts: [...accepts, ...rejects],
        }),
      ),
    );
    child.send(tasks);
    [outcomes] = await Promise.race([once(child, 'message'), failed]);
  });

  for (const [index, { name, accepts, rejects }] of subjects.entries()) {
    test(`llama.cpp reads a grammar as we mean it: ${name}`, () => {
      const expected = [...accepts.map(() => true), ...rejects.map(() => false)];
      assert.deepEqual(outcomes[index * 2]!.belongs, expected);
    });
  }

  for (const [index, { name, schema }] of subjects.entries()) {
    test(`a tiny model writes what validates: ${name}`, () => {
      const validate = createValidator(schema);
      const mine = outcomes.slice(index * 2, index * 2 + 2);
      assert.equal(mine.length, 2);
      for (const { text, completed } of mine) {
        if (completed) assert.ok(validate(JSON.parse(text)), text);
      }
    });
  }

  for (const [index, { options }] of toolCalls.entries()) {
    test(`a tiny model writes tool calls that validate: ${JSON.stringify(options)}`, () => {
      const validate = createValidator(toolSchema);
      const from = (subjects.length + index) * 2;
      for (const { text: whole, completed } of outcomes.slice(from, from + 2)) {
        if (!completed) continue;
        const calls = [...whole.matchAll(/<tool_call>\n?(\{.*?\})\n?<\/tool_call>/g)];
        assert.equal(calls.map(([call]) => call).join('\n'), whole);
        assert.ok(calls.length >= 1 && (options.parallel || calls.length === 1), whole);
        for (const [call, body] of calls) assert.ok(validate(JSON.parse(body!)), call);
      }
    });
  }

  test('nearly every response ends within the token limit', () => {
    const completed = outcomes.filter((outcome) => outcome.completed);
    const open = outcomes.filter((outcome) => !outcome.completed).map(({ text }) => text);
    assert.equal(outcomes.length, (subjects.length + toolCalls.length) * 2);
    assert.ok(completed.length >= outcomes.length * 0.8, open.join('\n'));
  });
});
