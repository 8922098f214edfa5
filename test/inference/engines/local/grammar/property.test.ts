// Soundness, by chance: random schemas, random texts of their grammars, and Ajv as the judge.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { jsonObjectGrammar, toGrammar } from '#inference/engines/local/grammar/schema-compiler.ts';
import { readGrammar } from '#test/support/grammar/gbnf.ts';
import { createWriter } from '#test/support/grammar/gbnf-text.ts';
import { createValidator, formats } from '#test/support/grammar/json-validator.ts';
import { schemas } from '#test/support/grammar/random-schemas.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

/** Small, fast and repeatable. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function writeTexts(grammar: string, seed: number, count: number): string[] {
  const random = createRandom(seed);
  const write = createWriter(readGrammar(grammar));
  return Array.from({ length: count }, (_, index) =>
    write({
      random,
      length: 60 + (index % 3) * 200,
      repeat: 1 + (index % 7),
      extreme: index % 3 === 0,
    }),
  );
}

function assertValid(schema: unknown, grammar: string, seed: number, count: number): void {
  const validate = createValidator(schema);
  for (const text of writeTexts(grammar, seed, count)) {
    const value: unknown = JSON.parse(text);
    if (!validate(value)) {
      const [error] = validate.errors ?? [];
      assert.fail(`${text}\n${JSON.stringify(schema)}\n${error?.instancePath} ${error?.message}`);
    }
  }
}

test('every text of a grammar parses and satisfies its schema', () => {
  let compiled = 0;
  let refused = 0;
  fc.assert(
    fc.property(schemas, fc.integer(), (schema, seed) => {
      let grammar: string;
      try {
        grammar = toGrammar(schema);
      } catch (error) {
        assert.ok(error instanceof UnsupportedSchema, String(error));
        refused++;
        return;
      }
      compiled++;
      assertValid(schema, grammar, seed, 12);
    }),
    { numRuns: propertyRuns(500), seed: propertySeed },
  );
  // Chance makes many that nothing satisfies.
  assert.ok(compiled > refused * 2, `only ${compiled} of ${compiled + refused} were compiled`);
});

test('every text of the JSON object grammar is an object', () => {
  for (const text of writeTexts(jsonObjectGrammar, 1, 300)) {
    const value: unknown = JSON.parse(text);
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), text);
  }
});

for (const format of Object.keys(formats)) {
  test(`every text of the format ${format} is one`, () => {
    const schema = { type: 'string', format };
    assertValid(schema, toGrammar(schema), 7, 300);
  });
}

test('numbers keep to their bounds, whatever the bounds', () => {
  const bound = fc.oneof(
    fc.integer({ min: -200, max: 200 }),
    fc.integer({ min: -200_000, max: 200_000 }).map((value) => value / 1000),
    fc.double({ min: -1e6, max: 1e6, noNaN: true }),
    fc.constantFrom(0, -0, 0.1, -0.1, 1e-7, 1e15, -1e15, 99.99, 100, 1e21),
  );
  const keywords = fc.tuple(
    fc.constantFrom('integer', 'number'),
    fc.constantFrom('minimum', 'exclusiveMinimum'),
    fc.constantFrom('maximum', 'exclusiveMaximum'),
  );
  let compiled = 0;
  fc.assert(
    fc.property(bound, bound, keywords, fc.integer(), (one, other, [type, low, high], seed) => {
      const schema = { type, [low]: Math.min(one, other), [high]: Math.max(one, other) };
      let grammar: string;
      try {
        grammar = toGrammar(schema);
      } catch (error) {
        assert.ok(error instanceof UnsupportedSchema, String(error));
        return;
      }
      compiled++;
      assertValid(schema, grammar, seed, 10);
    }),
    { numRuns: propertyRuns(400), seed: propertySeed },
  );
  assert.ok(compiled > propertyRuns(300), `only ${compiled}`);
});
