// Schemas made to hurt: each must be compiled or refused quickly, and never crash.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { toGrammar } from '#inference/engines/local/grammar/schema-compiler.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

function nest(depth: number, wrap: (inner: unknown) => unknown): unknown {
  return range(depth).reduce<unknown>((inner) => wrap(inner), { type: 'string' });
}

/** Every definition refers twice to the next one, in the way that `wrap` says. */
function bomb(count: number, wrap: (a: unknown, b: unknown) => unknown): unknown {
  const next = (index: number) => ({ $ref: `#/$defs/d${index + 1}` });
  const entries = range(count).map((index) => [`d${index}`, wrap(next(index), next(index))]);
  return {
    $ref: '#/$defs/d0',
    $defs: { ...Object.fromEntries(entries), [`d${count}`]: { type: 'string' } },
  };
}

/** Each class shares most of its characters with all others, so that a state has an edge for each of their ends. */
function overlapping(times: number): string {
  const char = (index: number) => String.fromCodePoint(0x4e00 + index);
  const classes = range(150).map((index) => `[${char(index)}-${char(0x1000 + index)}]${index}`);
  return `^(?:${classes.join('|')}){1,${times}}$`;
}

const hostile: Record<string, () => unknown> = {
  'ten thousand nested properties': () => nest(10_000, (a) => ({ properties: { a } })),
  'ten thousand nested items': () => nest(10_000, (items) => ({ type: 'array', items })),
  'ten thousand nested allOf': () => nest(10_000, (inner) => ({ allOf: [inner] })),
  'a deep constant': () => ({ const: nest(10_000, (inner) => [inner]) }),
  'two hundred thousand members': () => ({
    properties: Object.fromEntries(range(200_000).map((index) => [`p${index}`, true])),
  }),
  'a bomb of anyOf': () => bomb(150, (a, b) => ({ anyOf: [a, b] })),
  'a bomb of allOf': () => bomb(150, (a, b) => ({ allOf: [a, b] })),
  'a bomb of oneOf': () => bomb(150, (a, b) => ({ oneOf: [a, b] })),
  'a bomb of members': () => bomb(150, (a, b) => ({ type: 'object', properties: { a, b } })),
  'a bomb of merged members': () =>
    bomb(60, (a, b) => ({ allOf: [{ properties: { x: a } }, { properties: { x: b, y: a } }] })),
  'alternatives multiplied by alternatives': () => ({
    allOf: range(30).map((index) => ({
      anyOf: range(10).map((other) => ({ required: [`p${index}-${other}`] })),
    })),
  }),
  'a hundred long strings': () => ({
    properties: Object.fromEntries(
      range(100).map((index) => [`p${index}`, { type: 'string', maxLength: 50_000 + index }]),
    ),
  }),
  'a thousand patterns': () => ({
    properties: Object.fromEntries(
      range(1000).map((index) => [
        `p${index}`,
        { type: 'string', pattern: `^(a|b){${index % 99}}.*c` },
      ]),
    ),
  }),
  'patterns that are large on the way': () => ({
    anyOf: range(2000).map((index) => ({ pattern: `^(a|b)*a(a|b){9}${index}$` })),
  }),
  'patterns multiplied by patterns': () => ({
    allOf: range(2).map((side) => ({
      anyOf: range(300).map((index) => ({ pattern: `^[^x]{${index % 50}}${side}.*${index}` })),
    })),
  }),
  'a long value against many patterns': () => ({
    const: 'a'.repeat(500_000),
    anyOf: range(2000).map((index) => ({ pattern: `^a*${index}$` })),
  }),
  'many members merged many times': () => ({
    properties: Object.fromEntries(range(5000).map((index) => [`p${index}`, true])),
    allOf: range(5000).map((index) => ({ required: [`p${index}`] })),
  }),
  'many branches that exclude each other': () => ({
    oneOf: range(1500).map((index) => ({
      properties: { kind: { const: index }, a: { type: 'string' } },
      required: ['kind'],
    })),
  }),
  'counting members one by one': () => ({
    properties: Object.fromEntries(range(1000).map((index) => [`p${index}`, true])),
    maxProperties: 500,
  }),
  'a pattern that backtracks, on an enum': () => ({
    type: 'string',
    pattern: '^(a+)+$',
    enum: [`${'a'.repeat(50_000)}!`, 'aa'],
  }),
  'five thousand constants twice': () => ({
    enum: range(5000),
    allOf: [{ enum: range(5000) }],
  }),
  'a long chain of references': () => ({
    $ref: '#/$defs/d0',
    $defs: Object.fromEntries(
      range(16_000).map((index) => [`d${index}`, { $ref: `#/$defs/d${index + 1}` }]),
    ),
  }),
  'a long chain of members': () => ({
    $ref: '#/$defs/d0',
    $defs: Object.fromEntries(
      range(9000).map((index) => [
        `d${index}`,
        { properties: { a: { $ref: `#/$defs/d${(index + 1) % 9000}` } } },
      ]),
    ),
  }),
  'a pattern with anchors in many groups': () => ({
    pattern: `(${range(300)
      .map(() => '^a')
      .join('|')})x(${range(300)
      .map(() => 'b$')
      .join('|')})`,
  }),
  'a pattern of classes that overlap': () => ({ pattern: overlapping(8) }),
  'a pattern of classes that overlap, with fewer states': () => ({ pattern: overlapping(5) }),
  'references in circles': () => ({
    $ref: '#/$defs/a',
    $defs: { a: { $ref: '#/$defs/b' }, b: { anyOf: [{ $ref: '#/$defs/a' }, true] } },
  }),
};

for (const [name, build] of Object.entries(hostile)) {
  test(`a hostile schema is compiled or refused: ${name}`, { timeout: 60_000 }, () => {
    const schema = build();
    try {
      const grammar = toGrammar(schema);
      assert.ok(grammar.length < 2_000_000);
    } catch (error) {
      assert.ok(error instanceof UnsupportedSchema, String(error));
    }
  });
}
