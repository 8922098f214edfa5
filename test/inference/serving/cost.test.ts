// What tokens cost, to the billionth of a dollar, and what a request may come to before it is served.

import assert from 'node:assert';
import { test } from 'node:test';
import { type CatalogEntry, createCatalog } from '#inference/models/catalog.ts';
import { estimateReservation } from '#inference/serving/admit.ts';
import { costOf } from '#inference/serving/cost.ts';

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

test('no usage costs nothing, and every price of the catalog gives integers', () => {
  assert.equal(costOf({ input: 1, output: 1 }, null), 0);
  for (const { id, price } of createCatalog().list()) {
    for (const count of [1, 3, 7, 12_345]) {
      const nano = costOf(price, usage(count, count));
      const exact = count * (Math.round(price.input * 1000) + Math.round(price.output * 1000));
      assert.equal(nano, exact, id);
    }
  }
});

test('a request reserves its prompt and, for each choice, the longest response', () => {
  const known = createCatalog().find('llama3.1-8b-instruct');
  assert(known !== undefined);
  const entry: CatalogEntry = { ...known, contextWindow: 10_000, price: { input: 1, output: 10 } };
  const ask = (body: object, over: Partial<CatalogEntry> = {}) =>
    estimateReservation({ kind: 'completion', body: { model: 'm', prompt: 'x', ...body } }, 100, [
      { ...entry, ...over },
    ]);
  const prompt = 1_124_000;
  assert.deepEqual(ask({ max_tokens: 7 }), { tokens: 32, costNano: prompt + 70_000 });
  assert.deepEqual(ask({ max_tokens: 7, n: 3 }), { tokens: 46, costNano: prompt + 210_000 });
  assert.deepEqual(ask({ max_tokens: 7, n: 2, best_of: 4 }).tokens, 25 + 28);
  assert.deepEqual(ask({ max_tokens: 7, prompt: ['x', 'y'] }).tokens, 25 + 14);
  assert.deepEqual(ask({}), { tokens: 1049, costNano: prompt + 100_000_000 });
  const capped = { maxOutputTokens: 50 };
  assert.deepEqual(ask({}, capped), { tokens: 75, costNano: prompt + 500_000 });
  assert.equal(ask({}, { ...capped, price: { input: 0, output: 0 } }).costNano, 0);
});
