// How a refused value is put into words, where every API must agree on what is meant.

import assert from 'node:assert';
import { test } from 'node:test';
import { cloudErrorFormat } from '#cloud/errors.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';
import { toViolation } from '#lib/schema/validation-error.ts';

test('an exclusive bound is not called the minimum or maximum', () => {
  const said = (keyword: string, format: typeof cloudErrorFormat) => {
    const violation = toViolation([{ instancePath: '/x', keyword, params: { limit: 5 } }]);
    return (
      format.renderViolation(violation, 'body', { x: 5 }).body as { error: { message: string } }
    ).error.message;
  };
  const cases: [string, string, RegExp][] = [
    ['minimum', 'x must be at least 5, got 5.', /greater than or equal to 5/],
    ['exclusiveMinimum', 'x must be more than 5, got 5.', /greater than 5/],
    ['maximum', 'x must be at most 5, got 5.', /less than or equal to 5/],
    ['exclusiveMaximum', 'x must be less than 5, got 5.', /less than 5/],
  ];
  for (const [keyword, inference, cloud] of cases) {
    assert.equal(said(keyword, inferenceErrorFormat), inference);
    assert.match(said(keyword, cloudErrorFormat), cloud);
  }
});
