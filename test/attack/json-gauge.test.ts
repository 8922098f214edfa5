// The gauge must never count fewer values than the parser creates, wherever the bytes are split.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { JsonGauge, maxDepth } from '#http/body/json.ts';
import { Refusal } from '#lib/errors.ts';

const gauge = (text: string, maxValues: number, pieceBytes = 1_000): number => {
  const counted = new JsonGauge(maxValues);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    counted.add(bytes.subarray(at, at + pieceBytes));
  }
  return counted.values;
};

/** Counts commas and brackets outside of strings, after removing the strings. */
function countSlowly(text: string): number {
  const outside = text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '');
  return 1 + (outside.match(/[,[{]/g) ?? []).length;
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, one) => sum + countValues(one), 1);
}

describe('the gauge of JSON bodies', () => {
  test('counts what is outside of strings, wherever the bytes are split', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 80 }), (text, pieceBytes) => {
        const values = gauge(text, 1e6, pieceBytes);
        assert.equal(values, countSlowly(text));
        assert(values >= countValues(JSON.parse(text)));
      }),
      { numRuns: 500 },
    );
  });

  test('finds the end of long strings with escapes', () => {
    for (const inside of [
      '\\"',
      '\\\\',
      '\\\\\\"',
      'a'.repeat(40),
      `${'a'.repeat(31)}\\"`,
      '],[{',
    ]) {
      const text = JSON.stringify([JSON.parse(`"${inside.repeat(50)}"`), 1, {}]);
      for (const pieceBytes of [1, 2, 3, 31, 32, 33, 64, 1e6]) {
        assert.equal(gauge(text, 1e6, pieceBytes), 5, `${inside} in pieces of ${pieceBytes}`);
      }
    }
  });

  test('throws at one value or one level too many', () => {
    assert.equal(gauge('[1,2,3]', 4), 4);
    assert.throws(() => gauge('[1,2,3,4]', 4), isRefusal('invalid_body'));
    assert.equal(gauge('['.repeat(maxDepth), 1e6), maxDepth + 1);
    assert.throws(() => gauge('['.repeat(maxDepth + 1), 1e6), isRefusal('invalid_json'));
  });
});

const isRefusal = (code: string) => (error: unknown) =>
  error instanceof Refusal && error.code === code;
