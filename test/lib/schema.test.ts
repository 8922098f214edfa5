// How a refused value is put into words, where every API must agree on what is meant.

import assert from 'node:assert';
import { test } from 'node:test';
import * as accounts from '#accounts/schema.ts';
import * as usage from '#accounts/usage/schema.ts';
import { cloudErrorFormat } from '#cloud/errors.ts';
import * as hosts from '#cloud/hosts/schema.ts';
import * as batches from '#inference/apis/batches/schema.ts';
import * as files from '#inference/apis/files/schema.ts';
import * as ollama from '#inference/apis/ollama/schema.ts';
import * as responses from '#inference/apis/responses/schema.ts';
import * as backends from '#inference/backends/schema.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';
import * as inference from '#inference/schema.ts';
import * as weights from '#inference/weights/schema.ts';
import { explainPattern } from '#lib/schema/pattern-words.ts';
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

test('every pattern of the dashboard’s API and of the inference APIs is explained in words', () => {
  const found = new Set<string>();
  const collect = (node: unknown): void => {
    if (node === null || typeof node !== 'object') return;
    const { pattern } = node as { pattern?: unknown };
    if (typeof pattern === 'string') found.add(pattern);
    for (const inner of Object.values(node)) collect(inner);
  };
  const dashboard = [accounts, usage, backends, weights, hosts];
  const apis = [inference, batches, files, ollama, responses];
  for (const schemas of [...dashboard, ...apis]) collect({ ...schemas });
  assert(found.size > 10);
  for (const pattern of found) assert.match(explainPattern(pattern), /^be /, pattern);
});
