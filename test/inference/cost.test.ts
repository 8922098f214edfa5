// What tokens cost, to the billionth of a dollar.

import assert from 'node:assert';
import { test } from 'node:test';
import { createCatalog } from '../../src/inference/catalog.ts';
import { costOf } from '../../src/inference/cost.ts';

const usage = (prompt: number, completion: number, cached: number | null = null) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: cached === null ? null : { cached_tokens: cached },
});

test('a token at $0.025 per million costs 25 billionths', () => {
  assert.equal(costOf({ input: 0.025, output: 0.04 }, usage(1, 0)), 25);
  assert.equal(costOf({ input: 0.025, output: 0.04 }, usage(10, 5)), 450);
  assert.equal(costOf({ input: 0.8, output: 0.8 }, usage(1_000_000, 0)), 0.8e9);
});

test('cached tokens cost like input unless they have a price', () => {
  assert.equal(costOf({ input: 1, output: 2 }, usage(10, 1, 4)), 12_000);
  assert.equal(costOf({ input: 1, output: 2, cached: 0.1 }, usage(10, 1, 4)), 8400);
  // An upstream that counts wrongly must not make it cheaper than free.
  assert.equal(costOf({ input: 1, output: 2, cached: 0.1 }, usage(10, 0, 40)), 1000);
});

test('nothing used costs nothing, and every price of the catalog gives whole numbers', () => {
  assert.equal(costOf({ input: 1, output: 1 }, null), 0);
  for (const { id, price } of createCatalog().list()) {
    for (const count of [1, 3, 7, 12_345]) {
      const nano = costOf(price, usage(count, count));
      const exact = count * (Math.round(price.input * 1000) + Math.round(price.output * 1000));
      assert.equal(nano, exact, id);
    }
  }
});
