// What the home page and the page of a request compute themselves: projections, speeds and shares.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { toHourlyPrice, toPercent, toSize, toTokenPrice } from '#lib/format.ts';
import { toProjection } from '../../web/src/home/projection.ts';
import { toSpeed } from '../../web/src/usage/request-speed.ts';

describe('computed on home', () => {
  test('a projection adds the remaining days of the UTC month', () => {
    const noon = Date.parse('2026-11-21T12:00:00Z');
    assert.equal(toProjection(10, 2, noon), 10 + 2 * 9.5);
    assert.equal(toProjection(10, 0, noon), 10);
    assert.equal(toProjection(1, 1, Date.parse('2026-12-31T12:00:00Z')), 1.5);
  });

  test('a response that is too short has no speed', () => {
    const request = (completion_tokens: number, first_token_ms: number, duration_ms: number) =>
      toSpeed({ completion_tokens, first_token_ms, duration_ms } as UsageRequest);
    assert.equal(request(101, 500, 2500), '50.0');
    assert.equal(request(3, 9, 10), null);
    assert.equal(request(100, 9, 10), null);
  });

  test('shares, prices and sizes have one form', () => {
    assert.equal(toPercent(1, 3), '33.3%');
    assert.equal(toPercent(1, 4000), '0.03%');
    assert.equal(toPercent(0, 0), '0%');
    assert.equal(toHourlyPrice(129), '$1.29/hour');
    assert.equal(toTokenPrice(0.025), '$0.025/M tokens');
    assert.equal(toSize(200_000), '200.0 kB');
  });
});
