// What the grammars can and can't write, and what is refused and where.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { jsonObjectGrammar, toGrammar } from '#inference/engines/local/grammar/schema-compiler.ts';
import { grammarCases } from '#test/support/grammar/cases.ts';
import { readGrammar } from '#test/support/grammar/gbnf.ts';
import { belongs } from '#test/support/grammar/gbnf-text.ts';
import { createValidator } from '#test/support/grammar/json-validator.ts';

for (const { name, schema, accepts, rejects } of grammarCases) {
  test(`a grammar can write what its schema allows: ${name}`, () => {
    const grammar = readGrammar(toGrammar(schema));
    const validate = createValidator(schema);
    for (const text of accepts) {
      assert.ok(validate(JSON.parse(text)), `the example itself is wrong: ${text}`);
      assert.ok(belongs(grammar, text), `can't write ${text.slice(0, 100)}`);
    }
    for (const text of rejects) assert.ok(!belongs(grammar, text), `writes ${text.slice(0, 100)}`);
  });
}

test('a small schema gives a small grammar', () => {
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' }, n: { const: 1 } },
    required: ['ok'],
  };
  assert.equal(
    toGrammar(schema),
    [
      'root ::= value-1',
      'value-1 ::= "{" object-4',
      'object-4 ::= "\\"ok\\":" repeat-3 value-6 object-5',
      'repeat-3 ::= space-2?',
      'value-6 ::= "true" | "false"',
      'object-5 ::= "," repeat-3 "\\"n\\":" repeat-3 value-8 object-7 | object-7',
      'space-2 ::= " "',
      'value-8 ::= "1"',
      'object-7 ::= "}"',
      '',
    ].join('\n'),
  );
});

test('the JSON object grammar accepts only objects', () => {
  const grammar = readGrammar(jsonObjectGrammar);
  for (const text of ['{}', '{"a": 1}', '{"a":{"b":[null, "x"]},"c": -0.5e3}']) {
    assert.ok(belongs(grammar, text), text);
  }
  for (const text of ['[]', '1', '"a"', '{"a"}', '{"a": 1}\n', ' {}']) {
    assert.ok(!belongs(grammar, text), text);
  }
});

test('annotations and vendor keywords change nothing', () => {
  const annotated = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://example.com/a',
    title: 'A',
    description: 'b',
    default: 1,
    examples: [1],
    deprecated: true,
    readOnly: true,
    'x-order': 3,
    type: 'integer',
  };
  assert.equal(toGrammar(annotated), toGrammar({ type: 'integer' }));
});

const refusals: readonly [path: string, schema: unknown][] = [
  ['properties.a.not', { type: 'object', properties: { a: { not: { type: 'string' } } } }],
  ['if', { if: {}, else: {} }],
  ['items.uniqueItems', { type: 'array', items: { type: 'array', uniqueItems: true } }],
  ['patternProperties', { type: 'object', patternProperties: {} }],
  ['dependentSchemas', { dependentSchemas: {} }],
  ['contains', { type: 'array', contains: {} }],
  ['propertyNames', { type: 'object', propertyNames: { maxLength: 3 } }],
  ['unevaluatedProperties', { type: 'object', unevaluatedProperties: false }],
  ['multipleOf', { type: 'number', multipleOf: 0.1 }],
  ['somethingNew', { somethingNew: 1 }],
  ['format', { type: 'string', format: 'iri' }],
  ['format', { type: 'integer', format: 'uint8' }],
  ['minimum', { type: 'number', minimum: 1e16 }],
  ['$ref', { $ref: 'https://example.com/schema' }],
  ['$ref', { $ref: '#/$defs/none' }],
  ['$ref', { $ref: '#' }],
  ['$defs.a.$ref', { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } }],
  ['properties.a.$id', { properties: { a: { $id: 'b' } } }],
  ['type', { type: 'text' }],
  ['pattern', { type: 'string', pattern: '(a)\\1' }],
  ['pattern', { type: 'string', pattern: '(?=a)b' }],
  ['pattern', { type: 'string', pattern: '^a(?!b)' }],
  ['pattern', { type: 'string', pattern: '(?<=a)b' }],
  ['pattern', { type: 'string', pattern: '\\bword' }],
  ['pattern', { type: 'string', pattern: '(' }],
  ['pattern', { type: 'string', pattern: '^(a|b)*a(a|b){20}$' }],
  ['pattern', { type: 'string', pattern: '((a{0,99}){0,99}){0,99}' }],
  ['pattern', { type: 'string', pattern: '^a*b*c*$', maxLength: 900_000 }],
  ['oneOf', { oneOf: [{ type: 'integer' }, { type: 'number' }] }],
  ['oneOf', { oneOf: [{ enum: [null] }, { type: 'null' }] }],
  [
    'properties.x.oneOf',
    { properties: { x: { oneOf: [{ type: 'object' }, { required: ['a'] }] } } },
  ],
  ['minProperties', { type: 'object', additionalProperties: { type: 'string' }, minProperties: 2 }],
  ['minLength', { type: 'string', minLength: 1e9 }],
  ['maxItems', { type: 'array', maxItems: -1 }],
  ['required', { type: 'object', required: 'a' }],
  ['properties.a', { properties: { a: 5 } }],
  ['items', { type: 'array', items: [{}] }],
  ['anyOf', { anyOf: [] }],
];

for (const [path, schema] of refusals) {
  test(`refused by name: ${JSON.stringify(schema)}`, () => {
    assert.throws(
      () => toGrammar(schema),
      (error) => {
        assert.ok(error instanceof UnsupportedSchema, String(error));
        assert.equal(error.path, path);
        assert.equal(error.keyword, path === 'properties.a' ? '' : path.split('.').at(-1));
        return true;
      },
    );
  });
}

const impossible: readonly unknown[] = [
  false,
  {
    $ref: '#/$defs/a',
    $defs: { a: { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, required: ['a'] } },
  },
  { type: 'string', enum: [1, 2] },
  { type: 'integer', minimum: 2, maximum: 1 },
  { type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 2 },
  { allOf: [{ type: 'string' }, { type: 'integer' }] },
  { type: 'object', properties: {}, required: ['a'], additionalProperties: false },
  { type: 'string', pattern: '^a$', minLength: 2 },
  { type: 'array', items: false, minItems: 1 },
];

for (const schema of impossible) {
  test(`a schema that nothing finite satisfies is refused: ${JSON.stringify(schema)}`, () => {
    assert.throws(() => toGrammar(schema), /is met by no finite JSON value/);
  });
}

test('alternatives that would multiply with the depth are refused', () => {
  const lists = (...items: unknown[]) => items.map((each) => ({ type: 'array', items: each }));
  const tree = { $ref: '#/$defs/tree' };
  const recursive = { anyOf: [...lists(tree, { $ref: '#/$defs/tree' }), { type: 'null' }] };
  assert.throws(
    () => toGrammar({ ...tree, $defs: { tree: recursive } }),
    /has alternatives that only differ after a nested value/,
  );
  const nested = (depth: number): unknown =>
    depth === 0 ? true : { anyOf: lists(nested(depth - 1), nested(depth - 1)) };
  assert.throws(() => toGrammar(nested(8)), UnsupportedSchema);
  const long = { type: 'array', items: { $ref: '#' }, maxItems: 5000 };
  assert.throws(() => toGrammar(long), UnsupportedSchema);
  const late = (op: string) => ({
    type: 'object',
    properties: { left: tree, op: { const: op } },
    required: ['left', 'op'],
  });
  assert.throws(
    () => toGrammar({ ...tree, $defs: { tree: { anyOf: [late('+'), late('-'), true] } } }),
    UnsupportedSchema,
  );
});

test('alternatives that are told apart by an early member may be nested', () => {
  const tree = { $ref: '#/$defs/tree' };
  const early = (op: string) => ({
    type: 'object',
    properties: { op: { const: op }, left: tree, right: tree },
    required: ['op', 'left', 'right'],
  });
  const grammar = readGrammar(
    toGrammar({
      ...tree,
      $defs: { tree: { anyOf: [early('+'), early('-'), { type: 'integer' }] } },
    }),
  );
  assert.ok(
    belongs(grammar, '{"op": "+", "left": {"op": "-", "left": 1, "right": 2}, "right": 3}'),
  );
});

test('a branch that can never end is left out of the grammar', () => {
  const endless = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/endless' } },
    required: ['a'],
  };
  const schema = { anyOf: [{ $ref: '#/$defs/endless' }, { type: 'null' }], $defs: { endless } };
  assert.equal(toGrammar(schema), 'root ::= value-1\nvalue-1 ::= "null"\n');
});
