// Tool calls as text, and the tokens that must be off while any grammar is on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findOverlongTokens } from '#inference/engines/local/child/vocabulary.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { toToolGrammar } from '#inference/engines/local/grammar-thread/tool-grammar.ts';
import { readGrammar } from '#test/support/grammar/gbnf.ts';
import { belongs } from '#test/support/grammar/gbnf-text.ts';

const tools = [
  {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { $ref: '#/$defs/city' } },
      required: ['city'],
      $defs: { city: { type: 'string' } },
    },
  },
  { name: 'now' },
];
const weather = '{"name": "get_weather", "arguments": {"city": "Oslo"}}';
const now = '{"name": "now", "arguments": {}}';

test('one call is written with or without newlines inside its tags', () => {
  const grammar = readGrammar(toToolGrammar(tools, { parallel: false }));
  assert.ok(belongs(grammar, `<tool_call>${weather}</tool_call>`));
  assert.ok(belongs(grammar, `<tool_call>\n${now}\n</tool_call>`));
  assert.ok(!belongs(grammar, `<tool_call>${now}</tool_call>\n<tool_call>${now}</tool_call>`));
  assert.ok(!belongs(grammar, `<tool_call>${now}`));
  assert.ok(!belongs(grammar, '<tool_call>{"name": "now", "arguments": {"a": 1}}</tool_call>'));
  assert.ok(!belongs(grammar, '<tool_call>{"name": "other", "arguments": {}}</tool_call>'));
});

test('one to sixteen parallel calls are written, each on its own line', () => {
  const grammar = readGrammar(toToolGrammar(tools, { parallel: true }));
  const calls = (count: number) =>
    Array.from({ length: count }, () => `<tool_call>${weather}</tool_call>`).join('\n');
  assert.ok(belongs(grammar, calls(1)));
  assert.ok(belongs(grammar, calls(16)));
  assert.ok(!belongs(grammar, calls(17)));
  assert.ok(!belongs(grammar, ''));
  assert.ok(!belongs(grammar, `${calls(1)}\n`));
});

test('arguments are an object even where the schema would allow more', () => {
  const grammar = readGrammar(toToolGrammar([{ name: 'a', parameters: {} }], { parallel: false }));
  assert.ok(belongs(grammar, '<tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>'));
  assert.ok(!belongs(grammar, '<tool_call>{"name": "a", "arguments": 1}</tool_call>'));
});

test('a refusal says which tool it is about', () => {
  const bad = { name: 'bad', parameters: { type: 'object', properties: { a: { not: {} } } } };
  assert.throws(
    () => toToolGrammar([...tools, bad], { parallel: false }),
    (error) => error instanceof UnsupportedSchema && error.path === 'bad.properties.a.not',
  );
});

test('tokens that could begin an overlong UTF-8 sequence are found', () => {
  const byteLevel = ['a', 'à', 'ð', 'Ġà', 'à¤', 'ðŁĺ', 'é', 'àĤ', 'ðĢ', 'âĢ'];
  assert.deepEqual(findOverlongTokens(byteLevel, 'gpt2'), [1, 2, 3, 7, 8]);
  assert.deepEqual(findOverlongTokens(['à', '<0xE0>', '<0xE1>', '<0xF0>'], 'llama'), [1, 3]);
});
